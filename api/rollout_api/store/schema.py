"""The tables, declared once for SQLite and PostgreSQL.

Rows that change with every lease are kept narrow: tasks, records and trajectories are in tables of
their own, written once. Times are Unix seconds, JSON is text, large JSON is compressed.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

SCHEMA_VERSION = 1

metadata = MetaData()

counters = Table(
    "counters",
    metadata,
    Column("name", String, primary_key=True),
    Column("value", BigInteger, nullable=False),
)

resources = Table(
    "resources",
    metadata,
    Column("kind", String, primary_key=True),
    Column("namespace", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("uid", String, nullable=False, index=True),
    Column("resource_version", BigInteger, nullable=False, index=True),
    Column("body", Text),  # none: it was removed
)

resource_owners = Table(
    "resource_owners",
    metadata,
    Column("owner_uid", String, primary_key=True),
    Column("kind", String, primary_key=True),
    Column("namespace", String, primary_key=True),
    Column("name", String, primary_key=True),
)

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("kind", String, nullable=False),
    Column("namespace", String, nullable=False),
    Column("name", String, nullable=False),
    Column("type", String, nullable=False),
    Column("reason", String, nullable=False),
    Column("message", Text, nullable=False),
    Column("count", Integer, nullable=False),
    Column("first_time", Float, nullable=False),
    Column("last_time", Float, nullable=False),
    UniqueConstraint("kind", "namespace", "name", "reason", "message"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("uid", String, primary_key=True),
    Column("namespace", String, nullable=False),
    Column("name", String, nullable=False),
    Column("spec", Text, nullable=False),
    Column("llm_pool", String, nullable=False),
    Column("pool", String),
    Column("samples", Integer, nullable=False),
    Column("max_attempts", Integer, nullable=False),
    Column("backoff_seconds", Float, nullable=False),
    Column("minimum_usable", Integer, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("suspended", Boolean, nullable=False),
    Column("cancelled", Text),
    Column("loaded", Boolean, nullable=False),
    Column("next_line", Integer, nullable=False),
    Column("invalid_tasks", Integer, nullable=False),
    Column("groups", Integer, nullable=False),
    Column("rollouts", Integer, nullable=False),
    Column("finished", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    Index("ix_jobs_name", "namespace", "name"),
)

invalid_tasks = Table(
    "invalid_tasks",
    metadata,
    Column("job_uid", String, primary_key=True),
    Column("line", Integer, primary_key=True),
    Column("field", String, nullable=False),
    Column("message", Text, nullable=False),
)

groups = Table(
    "groups",
    metadata,
    Column("group_id", String, primary_key=True),
    Column("job_uid", String, nullable=False),
    Column("task_id", String, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("environment", Text),
    Index("ix_groups_job", "job_uid", "task_id"),
)

tasks = Table(
    "tasks",
    metadata,
    Column("group_id", String, primary_key=True),
    Column("task", LargeBinary, nullable=False),  # without grading
    Column("grading", LargeBinary, nullable=False),
)

rollouts = Table(
    "rollouts",
    metadata,
    Column("rollout_id", String, primary_key=True),
    Column("job_uid", String, nullable=False),
    Column("group_id", String, nullable=False),
    Column("sample_index", Integer, nullable=False),
    Column("outcome", String),
    Column("trainable", Boolean),
    Column("reward", Float),
    Column("failure", Text),
    Column("provenance_issues", Text, nullable=False),
    Column("artifact", Text),
    Column("turns", Integer, nullable=False),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Index("ix_rollouts_progress", "job_uid", "outcome", "prompt_tokens", "output_tokens"),
    Index("ix_rollouts_group", "job_uid", "group_id", "outcome"),
)

units = Table(
    "units",
    metadata,
    Column("work_id", String, primary_key=True),
    Column("job_uid", String, nullable=False),
    Column("group_id", String, nullable=False),
    Column("rollout_id", String),
    Column("position", BigInteger, nullable=False),  # creation order within the job
    Column("stage", String, nullable=False),
    Column("state", String, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("charged", Integer, nullable=False),
    Column("worker", String),
    Column("incarnation", String),
    Column("backend", String),
    Column("queued_at", Float, nullable=False),
    Column("leased_at", Float, nullable=False),
    Column("due_at", Float),
    Column("queued_seconds", Float, nullable=False),
    Column("active_seconds", Float, nullable=False),
    Column("completed_attempt", Integer, nullable=False),
    Column("completed_digest", String, nullable=False),
    Index("ix_units_queue", "job_uid", "stage", "state", "position"),
    Index("ix_units_group", "group_id", "stage"),
)
Index(
    "ix_units_due",
    units.c.due_at,
    sqlite_where=units.c.due_at.is_not(None),
    postgresql_where=units.c.due_at.is_not(None),
)

trajectories = Table(
    "trajectories",
    metadata,
    Column("rollout_id", String, primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

records = Table(
    "records",
    metadata,
    Column("job_uid", String, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("rollout_id", String, nullable=False, unique=True),
    Column("body", Text, nullable=False),
)

llm_pools = Table(
    "llm_pools",
    metadata,
    Column("namespace", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("body", Text, nullable=False),
)
