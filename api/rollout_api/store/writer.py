"""The one writer: transaction functions queue up, and those that wait commit together.

Each function runs in a savepoint, so that one that raises undoes only itself. A caller hears of its
result after the commit, and never before; a commit that fails fails all functions in it. Group
commit makes durable writes cheap: one flush to disk serves every caller that waited for the last.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from rollout_api.store.errors import DatabaseUnavailableError

T = TypeVar("T")
Topic = tuple[str, ...]

MOST_PER_COMMIT = 256


@dataclass(frozen=True, slots=True)
class Wake:
    """Somebody may wait for what a transaction did."""

    topic: Topic
    count: int | None = None
    """How many waiters have something to do; None for all."""


@dataclass(slots=True)
class Transaction:
    """What a transaction function works with."""

    connection: Connection
    wakes: list[Wake] = field(default_factory=list[Wake])

    def wake(self, topic: Topic, count: int | None = None) -> None:
        """Wake waiters once the transaction is committed."""
        self.wakes.append(Wake(topic, count))


@dataclass(slots=True)
class _Submission:
    function: Callable[[Transaction], Any]
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None
    wakes: list[Wake] = field(default_factory=list[Wake])


class GroupCommitWriter:
    """A thread that owns the writing connection."""

    def __init__(self, connection: Connection, publish: Callable[[list[Wake]], None]) -> None:
        """Start the thread; `publish` is called in the event loop of the submitting task."""
        self._connection = connection
        self._publish = publish
        self._queue: queue.SimpleQueue[_Submission | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="database-writer", daemon=True)
        self._thread.start()

    async def submit(self, function: Callable[[Transaction], T]) -> T:
        """Run `function` in a transaction and return its result after the commit.

        Raises:
            DatabaseUnavailableError: The commit failed; nothing was written.
            Exception: What `function` raised; what it wrote is undone.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.put(_Submission(function, future))
        return await future

    def stop(self) -> None:
        """Finish what is queued, then end the thread."""
        self._queue.put(None)
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        going_on = True
        while going_on:
            batch, going_on = self._next_batch()
            if not batch:
                continue
            try:
                self._commit(batch)
            except Exception as error:
                self._start_afresh()
                for submission in batch:
                    submission.error = submission.error or _unavailable(error)
                    submission.wakes.clear()
            self._reply(batch)

    def _start_afresh(self) -> None:
        """Leave a transaction of unknown state behind, with its connection."""
        self._connection.invalidate()
        self._connection.rollback()

    def _next_batch(self) -> tuple[list[_Submission], bool]:
        batch: list[_Submission] = []
        item = self._queue.get()
        while item is not None:
            batch.append(item)
            if len(batch) >= MOST_PER_COMMIT:
                return batch, True
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False

    def _commit(self, batch: list[_Submission]) -> None:
        with self._connection.begin():
            for submission in batch:
                self._run_one(submission)

    def _run_one(self, submission: _Submission) -> None:
        execute = self._connection.exec_driver_sql
        transaction = Transaction(self._connection)
        execute("SAVEPOINT submission")
        try:
            submission.result = submission.function(transaction)
        except Exception as error:
            submission.error = _translated(error)
            execute("ROLLBACK TO SAVEPOINT submission")
        else:
            submission.wakes = transaction.wakes
        execute("RELEASE SAVEPOINT submission")

    def _reply(self, batch: list[_Submission]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[_Submission]] = {}
        for submission in batch:
            by_loop.setdefault(submission.future.get_loop(), []).append(submission)
        for loop, submissions in by_loop.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._deliver, submissions)

    def _deliver(self, batch: list[_Submission]) -> None:
        for submission in batch:
            if submission.future.done():
                continue
            if submission.error is not None:
                submission.future.set_exception(submission.error)
            else:
                submission.future.set_result(submission.result)
        wakes = [wake for submission in batch for wake in submission.wakes]
        if wakes:
            self._publish(wakes)


def _translated(error: Exception) -> Exception:
    return _unavailable(error) if isinstance(error, OperationalError) else error


def _unavailable(error: Exception) -> DatabaseUnavailableError:
    cause = getattr(error, "orig", None) or error
    return DatabaseUnavailableError(f"the database does not take writes: {cause}")
