"""Slurm's controller by its commands: sbatch, squeue and scancel.

Commands get a small environment of their own, so that neither a secret of the user's nor a
`SBATCH_` variable finds its way into a job.
"""

import asyncio
import ctypes
import os
import signal
from collections.abc import Mapping, Sequence

from rollout_slurm.errors import SlurmUnavailable, SlurmUncertain
from rollout_slurm.job import JobSeen, SlurmJob
from rollout_slurm.text import QUEUE, failure, jobs_in, submission, submitted_id

_TIMEOUT_SECONDS = 60.0
_MOST_IDS = 500
"""In one command line."""
_PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF")
_SET_PARENT_DEATH_SIGNAL = 1
_libc = ctypes.CDLL(None)


def _die_with_parent() -> None:
    """A submission must not be under way any more when another bridge looks for what was done."""
    _libc.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


class CommandLine:
    """Slurm by its commands on this machine.

    Args:
        inherited: The environment to take paths and names from.
    """

    def __init__(self, inherited: Mapping[str, str] = os.environ) -> None:
        own = {name: inherited[name] for name in _PASSED_ON if name in inherited}
        self._env = {**own, "LC_ALL": "C.UTF-8", "SLURM_TIME_FORMAT": "%s"}
        self.requests = 0
        """Requests to the controller so far."""

    async def jobs(self) -> tuple[JobSeen, ...]:
        """All jobs of this user that some bridge submitted, those that ended lately included."""
        return jobs_in(await self._run(QUEUE))

    async def submit(self, job: SlurmJob) -> int:
        """Submit a job and return its id."""
        return submitted_id(await self._run(submission(job), job.script))

    async def cancel(self, job_ids: Sequence[int]) -> None:
        """Cancel jobs; those that have ended or are unknown are fine."""
        for first in range(0, len(job_ids), _MOST_IDS):
            some = job_ids[first : first + _MOST_IDS]
            await self._run(["scancel", "--quiet", *(str(job_id) for job_id in some)])

    async def aclose(self) -> None:
        """Nothing is held between two commands."""

    async def _run(self, words: Sequence[str], script: str = "") -> str:
        self.requests += 1
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                env=self._env,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                preexec_fn=_die_with_parent,
            )
        except OSError as error:
            msg = f"cannot run `{words[0]}`: {error.strerror}; are Slurm's commands on the PATH?"
            raise SlurmUnavailable(msg) from error
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                stdout, stderr = await process.communicate(script.encode())
        except TimeoutError as error:
            msg = f"`{words[0]}` gave no answer in {_TIMEOUT_SECONDS:g} s"
            raise SlurmUncertain(msg) from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise failure(stderr.decode(errors="replace"))
        return stdout.decode(errors="replace")
