"""What Slurm's commands take and give, as pure functions: arguments, tables, words of refusal."""

from datetime import UTC, datetime

from rollout_slurm.errors import BridgeError, SlurmRefused, SlurmUnavailable, SlurmUncertain
from rollout_slurm.job import JobSeen, SlurmJob, key_in

SEPARATOR = "\x1f"
"""Between the columns of a table; occurs in none of them."""
_COLUMNS = ("JobID", "State", "Reason", "exit_code", "SubmitTime", "StartTime", "Comment")
QUEUE = (
    *("squeue", "--noheader", "--me", "--states=all"),
    f"--Format={','.join(f'{column}:{SEPARATOR}' for column in _COLUMNS)}",
)
"""Lists all jobs of the user, those that ended lately included, by one request."""
_SILENT = (
    "unable to contact slurm controller",
    "connection refused",
    "connection reset",
    "unable to establish",
    "transport endpoint",
    "resource temporarily unavailable",
    "controller not responding",
    "munge",
)
_PERHAPS_DONE = ("timed out", "zero bytes", "unexpected message", "communication", "i/o error")


def submission(job: SlurmJob) -> list[str]:
    """The command that submits a job whose script it reads."""
    placement, arguments = job.placement, ["sbatch", "--parsable", "--no-requeue"]
    options = {
        "job-name": job.name,
        "comment": job.key.comment,
        "output": job.output,
        "open-mode": "append",
        "chdir": job.directory,
        "signal": None if job.signal_seconds is None else f"B:TERM@{job.signal_seconds}",
        "partition": placement.partition,
        "account": placement.account,
        "qos": placement.qos,
        "reservation": placement.reservation,
        "time": placement.time_limit_minutes,
        "cpus-per-task": placement.cpus,
        "mem": None if placement.memory_mebibytes is None else f"{placement.memory_mebibytes}M",
        "gres": placement.gres,
        "constraint": placement.constraint,
    }
    arguments += [f"--{name}={value}" for name, value in options.items() if value is not None]
    return [*arguments, *placement.extra_args]


def submitted_id(output: str) -> int:
    """The id in what `sbatch --parsable` prints: `ID` or `ID;CLUSTER`."""
    number = output.strip().partition(";")[0]
    if not number.isdecimal():
        msg = f"sbatch printed {output!r} and not the id of a job"
        raise SlurmUncertain(msg)
    return int(number)


def jobs_in(table: str) -> tuple[JobSeen, ...]:
    """The jobs in what `QUEUE` prints that some bridge submitted."""
    found = (_job_in(line.split(SEPARATOR)) for line in table.splitlines() if line)
    return tuple(job for job in found if job is not None)


def _job_in(cells: list[str]) -> JobSeen | None:
    job_id, state, reason, status, submitted, started, comment = (
        cell.strip() for cell in cells[: len(_COLUMNS)]
    )
    key = key_in(comment)
    if key is None or not job_id.isdecimal():
        return None
    return JobSeen(
        job_id=int(job_id),
        key=key,
        state=state,
        reason=reason,
        exit_status=int(status) if status.isdecimal() else 0,
        submitted=_time(submitted),
        started=_time(started),
    )


def _time(text: str) -> datetime | None:
    return datetime.fromtimestamp(int(text), UTC) if text.isdecimal() and int(text) else None


def failure(stderr: str) -> BridgeError:
    """The error that a failed command means, in Slurm's own words."""
    lines = [line.partition("error: ")[2] or line for line in stderr.splitlines() if line.strip()]
    words = "; ".join(dict.fromkeys(line.strip() for line in lines))[:1000] or "no words"
    lower = words.lower()
    if any(part in lower for part in _PERHAPS_DONE):
        return SlurmUncertain(words)
    if any(part in lower for part in _SILENT):
        return SlurmUnavailable(words)
    return SlurmRefused(words)
