"""Group commit: durable before the answer, and one failure hurts nobody else."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, insert, select
from sqlalchemy.exc import OperationalError

from rollout_api.store.database import Database
from rollout_api.store.errors import DatabaseInUseError, DatabaseUnavailableError
from rollout_api.store.schema import counters
from rollout_api.store.writer import Transaction, Wake


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "x" / "gateway.db")
    yield opened
    opened.close()


def names(connection: Connection) -> set[str]:
    return set(connection.execute(select(counters.c.name)).scalars())


def add(name: str, *, fail: bool = False) -> Callable[[Transaction], str]:
    def function(tx: Transaction) -> str:
        tx.connection.execute(insert(counters), {"name": name, "value": 1})
        tx.wake((name,))
        if fail:
            raise KeyError(name)
        return name

    return function


async def test_those_that_wait_commit_together_and_a_failure_undoes_only_itself(
    database: Database,
) -> None:
    woken: list[Wake] = []
    database.on_commit(woken.extend)
    commits = 0

    def count(_: object) -> None:
        nonlocal commits
        commits += 1

    event.listen(database._engine, "commit", count)
    results = await asyncio.gather(
        *(database.write(add(f"n{n}", fail=n % 10 == 3)) for n in range(100)),
        return_exceptions=True,
    )
    failed = [n for n, result in enumerate(results) if isinstance(result, KeyError)]
    assert failed == list(range(3, 100, 10))
    assert commits < 50
    stored = await database.read(names)
    assert stored >= {f"n{n}" for n in range(100) if n not in failed}
    assert not stored & {f"n{n}" for n in failed}
    assert {wake.topic[0] for wake in woken} == {f"n{n}" for n in range(100) if n not in failed}


async def test_a_commit_that_fails_fails_its_callers_and_wakes_nobody(database: Database) -> None:
    woken: list[Wake] = []
    database.on_commit(woken.extend)

    def full(_: object) -> None:
        raise OperationalError("COMMIT", {}, Exception("database or disk is full"))

    event.listen(database._engine, "commit", full)
    with pytest.raises(DatabaseUnavailableError, match="disk is full"):
        await database.write(add("lost"))
    event.remove(database._engine, "commit", full)
    assert woken == []
    assert "lost" not in await database.read(names)
    assert await database.write(add("kept")) == "kept"


async def test_a_cancelled_caller_does_not_undo_its_write(database: Database) -> None:
    task = asyncio.create_task(database.write(add("written")))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await database.write(add("next"))
    assert "written" in await database.read(names)


def test_a_database_has_one_owner_and_can_be_opened_again(tmp_path: Path) -> None:
    first = Database(tmp_path / "gateway.db")
    with pytest.raises(DatabaseInUseError):
        Database(tmp_path / "gateway.db")
    first.close()
    Database(tmp_path / "gateway.db").close()
