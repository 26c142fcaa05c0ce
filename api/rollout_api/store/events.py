"""Events: what happened to resources, counted instead of repeated."""

from datetime import UTC, datetime

from sqlalchemy import Connection, delete, insert, select, update

from rollout_api.store.schema import events
from rollout_api.store.writer import Transaction
from rollout_crds.resources import Event

MOST_LISTED = 1000


def record_event(tx: Transaction, event: Event, now: float) -> None:
    """Count an event that is known, or keep a new one."""
    same = (
        events.c.kind == event.kind,
        events.c.namespace == event.namespace,
        events.c.name == event.name,
        events.c.reason == event.reason,
        events.c.message == event.message,
    )
    again = update(events).where(*same)
    again = again.values(count=events.c.count + event.count, last_time=now, type=event.type)
    if tx.connection.execute(again).rowcount:
        return
    values = event.model_dump(exclude={"first_time", "last_time"})
    tx.connection.execute(insert(events), {**values, "first_time": now, "last_time": now})


def forget_events(tx: Transaction, kind: str, namespace: str, name: str) -> None:
    """Drop the events of a removed object, so that a later one of its name starts without any."""
    of_object = (events.c.kind == kind, events.c.namespace == namespace, events.c.name == name)
    tx.connection.execute(delete(events).where(*of_object))


def list_events(
    connection: Connection, kind: str | None, name: str | None, namespace: str | None
) -> list[Event]:
    """The latest events, oldest first; every filter may be left out."""
    wanted = {"kind": kind, "name": name, "namespace": namespace}
    conditions = [events.c[key] == value for key, value in wanted.items() if value is not None]
    statement = select(events).where(*conditions)
    statement = statement.order_by(events.c.last_time.desc(), events.c.id.desc())
    rows = connection.execute(statement.limit(MOST_LISTED)).mappings().all()
    return [
        Event.model_validate(
            {
                **{key: row[key] for key in row if key != "id"},
                "first_time": datetime.fromtimestamp(row["first_time"], UTC),
                "last_time": datetime.fromtimestamp(row["last_time"], UTC),
            }
        )
        for row in reversed(rows)
    ]
