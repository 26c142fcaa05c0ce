"""Process 1 of a sandbox: serves the tools on an inherited socket until the host lets it go.

As process 1 of its PID namespace it gets no signal that it has no handler for, not even SIGKILL,
from anything in the sandbox; and being not dumpable, it can't be traced or read through `/proc`.

Plain threads and the standard library: an event loop and a web framework would triple the time and
the memory that each sandbox takes before its first command.
"""

import os
import signal
import socket
import sys
import threading
import traceback

from .app import App, make_context
from .guard import Guard
from .http import Connection
from .messages import decode
from .privileges import shed
from .processes import Reaper, process_table
from .refusals import Refusal
from .types import ServerConfig
from .watches import Watches

_TICK_SECONDS = 0.5
_STACK_BYTES = 512 * 1024


def _end_with_the_worker(lifeline: int) -> None:
    """End when the worker lets go or is gone."""
    if not os.read(lifeline, 1):
        os._exit(0)


def _serve(app: App, connection: Connection) -> None:
    """Answer the requests of one connection until the host closes it."""
    while True:
        try:
            connection.answer(app.handle(connection.receive()))
        except Refusal as refusal:
            connection.refuse(refusal)
        except (EOFError, OSError):
            return
        except Exception as error:
            traceback.print_exc()
            connection.fail(f"{type(error).__name__}: {error}")


def _accept(app: App, listener: socket.socket, content_bytes: int) -> None:
    peer, _ = listener.accept()
    connection = Connection(peer, content_bytes)
    threading.Thread(target=_serve, args=(app, connection), daemon=True).start()


def _look_after_processes(watches: Watches, guard: Guard) -> None:
    """While there are processes, reap orphans and hold the others to the limits."""
    signal.set_wakeup_fd(watches.waking, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    reaper = Reaper()

    def tick() -> bool:
        more = guard.check()
        return reaper.scan(process_table(), os.getpid()) or more

    watches.tick_with(tick, _TICK_SECONDS)


def main() -> None:
    """Serve; the only argument is a `ServerConfig` as JSON."""
    config = decode(ServerConfig, sys.argv[1].encode())
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    shed()
    os.set_inheritable(config.lifeline_fd, False)
    os.chdir("/")
    threading.stack_size(_STACK_BYTES)
    watches = Watches()
    watches.add(config.lifeline_fd, lambda: _end_with_the_worker(config.lifeline_fd))
    guard = Guard(config)
    _look_after_processes(watches, guard)
    listener = socket.socket(fileno=config.socket_fd)
    listener.set_inheritable(False)
    app = App(make_context(config, dict(os.environ), watches), guard)
    watches.add(listener.fileno(), lambda: _accept(app, listener, config.transfer_bytes))
    watches.run()


if __name__ == "__main__":
    main()
