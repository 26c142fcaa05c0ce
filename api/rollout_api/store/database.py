"""The way to the database: durable writes through one writer, reads beside it.

Callers see two coroutines, `write` and `read`, each of which runs a function with a connection.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, inspect, select
from sqlalchemy.exc import DatabaseError

from rollout_api.store.errors import SchemaVersionError, StoreError
from rollout_api.store.lock import FileLock
from rollout_api.store.schema import SCHEMA_VERSION, counters, metadata
from rollout_api.store.writer import GroupCommitWriter, Transaction, Wake

T = TypeVar("T")

READERS = 3


class Database:
    """A SQLite database in WAL mode, owned by this process."""

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        """Open the database, creating it when it is missing.

        Args:
            path: The database file; its folder is created with access for the owner only.
            durable: Flush each commit to disk before it is answered.

        Raises:
            DatabaseInUseError: Another gateway has it open.
            SchemaVersionError: Another version of the gateway wrote it.
            StoreError: It is no database, or can not be read.
        """
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = FileLock(path)
        try:
            self._engine = _sqlite_engine(path, durable=durable)
            _prepare_schema(self._engine, path)
        except DatabaseError as error:
            self._lock.release()
            msg = (
                f"database {path} can not be used: {error.orig}; choose another --state-dir or --db"
            )
            raise StoreError(msg) from error
        except BaseException:
            self._lock.release()
            raise
        self._publish: Callable[[list[Wake]], None] = lambda _: None
        self._writer = GroupCommitWriter(
            self._engine.connect().execution_options(writer=True),
            lambda wakes: self._publish(wakes),
        )
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="database-reader")

    def on_commit(self, publish: Callable[[list[Wake]], None]) -> None:
        """Set who is told, in the event loop, what committed transactions woke."""
        self._publish = publish

    async def write(self, function: Callable[[Transaction], T]) -> T:
        """Run `function` in a transaction; see `GroupCommitWriter.submit`."""
        return await self._writer.submit(function)

    async def read(self, function: Callable[[Connection], T]) -> T:
        """Run `function` on a consistent snapshot of what is committed."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self._read, function)

    def close(self) -> None:
        """Finish pending writes and let go of the file."""
        self._writer.stop()
        self._readers.shutdown()
        self._engine.dispose()
        self._lock.release()

    def _read(self, function: Callable[[Connection], T]) -> T:
        with self._engine.connect() as connection, connection.begin():
            return function(connection)


def _sqlite_engine(path: Path, *, durable: bool) -> Engine:
    engine = create_engine(f"sqlite:///{path}", pool_size=READERS + 1, max_overflow=0)
    synchronous = "FULL" if durable else "OFF"

    def configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions begin where we say so, below
        for pragma in (
            "journal_mode=WAL",
            f"synchronous={synchronous}",
            "busy_timeout=5000",
            "cache_size=-8192",
            "temp_store=MEMORY",
        ):
            connection.execute(f"PRAGMA {pragma}")

    def begin(connection: Connection) -> None:
        writer = connection.get_execution_options().get("writer", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writer else "BEGIN")

    event.listen(engine, "connect", configure)
    event.listen(engine, "begin", begin)
    return engine


def _prepare_schema(engine: Engine, path: Path) -> None:
    with engine.connect().execution_options(writer=True) as connection, connection.begin():
        if not inspect(connection).has_table(counters.name):
            metadata.create_all(connection)
            connection.execute(
                counters.insert(),
                [
                    {"name": "schema_version", "value": SCHEMA_VERSION},
                    {"name": "resource_version", "value": 1},
                ],
            )
        found = connection.execute(
            select(counters.c.value).where(counters.c.name == "schema_version")
        ).scalar_one()
    if found != SCHEMA_VERSION:
        msg = (
            f"database {path} has schema version {found}, this gateway needs {SCHEMA_VERSION}: "
            "use the version that wrote it, or another --state-dir or --db"
        )
        raise SchemaVersionError(msg)
