"""Slurm's controller by slurmrestd, version 0.0.38 of its interface.

Whatever slurmrestd only warns of would make another job than the one that was asked for, so a
warning is a refusal. The token is read from its file for each request: renewing it is writing it.
This version cannot signal a batch script before its time limit, so workers hand back what they work
on in the time that Slurm's `KillWait` leaves them at the limit itself.
"""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2

from rollout_crds.locations import parse_server_url
from rollout_slurm.errors import BridgeError, SlurmRefused, SlurmUnavailable, SlurmUncertain
from rollout_slurm.job import JobSeen, SlurmJob, key_in

_ROOT = "/slurm/v0.0.38"
_TIMEOUT_SECONDS = 60.0
_UNKNOWN_JOB = 2017
_ALREADY_DONE = 2021
_REFUSALS = range(2000, 5000)
"""Numbers of errors with which the controller itself says no."""
_SKEW_SECONDS = 60
"""By which the clocks here and there may differ."""


class Rest:
    """Slurm by slurmrestd.

    Args:
        url: Of slurmrestd: `http(s)://host:port` or `unix:///path.sock`.
        user: Whose jobs these are.
        token_file: Holds the user's JSON web token and nothing else.
        path: Search path of the jobs, which start with no other variable.
    """

    def __init__(self, url: str, user: str, token_file: Path, path: str) -> None:
        address = parse_server_url(url)
        self._url, self._user, self._token_file, self._path = url, user, token_file, path
        self._http = httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(uds=address.socket_path),
            base_url=address.base_url,
            timeout=_TIMEOUT_SECONDS,
            trust_env=False,
        )
        self._listed: tuple[JobSeen, ...] = ()
        self._listed_at = 0
        self.requests = 0
        """Requests to slurmrestd so far."""

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def jobs(self) -> tuple[JobSeen, ...]:
        """All jobs of this user that some bridge submitted, those that ended lately included."""
        asked_at = int(time.time())
        since = {"update_time": str(self._listed_at - _SKEW_SECONDS)} if self._listed_at else {}
        response = await self._request("GET", "/jobs", params=since)
        if response.status_code != httpx2.codes.NOT_MODIFIED:
            rows = [row for row in _body(response)["jobs"] if row["user_name"] == self._user]
            self._listed = tuple(job for row in rows if (job := _job_in(row)) is not None)
        self._listed_at = asked_at
        return self._listed

    async def submit(self, job: SlurmJob) -> int:
        """Submit a job and return its id."""
        content = _submission(job, self._path)
        answer = _body(await self._request("POST", "/job/submit", json=content))
        job_id = int(answer["job_id"])
        if warnings := answer.get("warnings"):
            await self.cancel([job_id])
            raise SlurmRefused(_words(warnings))
        return job_id

    async def cancel(self, job_ids: Sequence[int]) -> None:
        """Cancel jobs; those that have ended or are unknown are fine."""
        for job_id in job_ids:
            try:
                await self._request("DELETE", f"/job/{job_id}")
            except _Answered as error:
                if not error.numbers & {_UNKNOWN_JOB, _ALREADY_DONE}:
                    raise

    async def _request(self, method: str, path: str, **options: Any) -> httpx2.Response:
        self.requests += 1
        try:
            response = await self._http.request(
                method, _ROOT + path, headers=self._headers(), **options
            )
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            msg = f"slurmrestd at {self._url} does not answer: {error}"
            raise SlurmUnavailable(msg) from error
        except httpx2.RequestError as error:
            msg = f"slurmrestd at {self._url} broke off: {error!r}"
            raise SlurmUncertain(msg) from error
        if response.status_code == httpx2.codes.NOT_MODIFIED:
            return response
        self._check(response)
        return response

    def _headers(self) -> dict[str, str]:
        try:
            token = self._token_file.read_text().strip()
        except OSError as error:
            msg = f"cannot read the token {self._token_file}: {error.strerror}"
            raise SlurmUnavailable(msg) from error
        return {"X-SLURM-USER-NAME": self._user, "X-SLURM-USER-TOKEN": token}

    def _check(self, response: httpx2.Response) -> None:
        if response.status_code == httpx2.codes.UNAUTHORIZED:
            msg = (
                f"slurmrestd refuses the token in {self._token_file}: write a new one to it "
                "(`scontrol token lifespan=SECONDS`)"
            )
            raise SlurmUnavailable(msg)
        if response.status_code == httpx2.codes.NOT_FOUND:
            msg = f"slurmrestd at {self._url} does not serve {_ROOT}"
            raise SlurmUnavailable(msg)
        errors = _body(response).get("errors", [])
        if errors or not response.is_success:
            raise _failure(response.status_code, errors)


class _Answered(SlurmRefused):
    """A refusal with the numbers of its errors."""

    def __init__(self, words: str, numbers: frozenset[int]) -> None:
        super().__init__(words)
        self.numbers = numbers


def _failure(status: int, errors: Sequence[Mapping[str, Any]]) -> BridgeError:
    numbers = frozenset(int(e.get("error_number") or e.get("error_code") or 0) for e in errors)
    words = _words(errors) or f"slurmrestd answered {status}"
    if status == httpx2.codes.BAD_REQUEST or any(number in _REFUSALS for number in numbers):
        return _Answered(words, numbers)
    return SlurmUncertain(words)


def _words(problems: Sequence[Mapping[str, Any]]) -> str:
    texts = (str(part.get("description") or part.get("error") or part) for part in problems)
    return "; ".join(dict.fromkeys(texts))[:1000]


def _body(response: httpx2.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError as error:
        msg = f"slurmrestd answered {response.status_code} and no JSON"
        raise SlurmUncertain(msg) from error
    return dict(body)


def _submission(job: SlurmJob, path: str) -> dict[str, Any]:
    placement = job.placement
    if placement.extra_args:
        msg = "`extraArgs` are arguments of sbatch, which slurmrestd does not take: remove them"
        raise SlurmRefused(msg)
    properties = {
        "name": job.name,
        "comment": job.key.comment,
        "standard_output": job.output,
        "open_mode": "append",
        "current_working_directory": job.directory,
        "environment": {"PATH": path},
        "requeue": False,
        "partition": placement.partition,
        "account": placement.account,
        "qos": placement.qos,
        "reservation": placement.reservation,
        "time_limit": placement.time_limit_minutes,
        "cpus_per_task": placement.cpus,
        "memory_per_node": placement.memory_mebibytes,
        "gres": placement.gres,
        "constraints": placement.constraint,
    }
    given = {name: value for name, value in properties.items() if value is not None}
    return {"script": job.script, "job": given}


def _job_in(row: Mapping[str, Any]) -> JobSeen | None:
    key = key_in(str(row.get("comment") or ""))
    if key is None:
        return None
    return JobSeen(
        job_id=int(row["job_id"]),
        key=key,
        state=str(row["job_state"]),
        reason=str(row.get("state_reason") or ""),
        exit_status=int(row.get("exit_code") or 0),
        submitted=_time(row.get("submit_time")),
        started=_time(row.get("start_time")),
    )


def _time(seconds: object) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if isinstance(seconds, int) and seconds else None
