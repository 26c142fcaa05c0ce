"""How the operator hands jobs over and steers them."""

from fastapi import APIRouter
from pydantic import BaseModel

from rollout_api.core.errors import FieldError, InvalidInputError
from rollout_api.core.task_lines import InvalidTask
from rollout_api.routes.dependencies import GatewayDependency
from rollout_crds.rolloutjob import JobProgress
from rollout_crds.wire import JobState, JobSubmission

router = APIRouter(prefix="/internal/v1/jobs/{uid}", tags=["operator"])


class InvalidTaskBody(BaseModel):
    """A task that was refused."""

    line: int
    field: str
    message: str


class LoadedJobBody(BaseModel):
    """What became of a submission."""

    groups: int
    rollouts: int
    invalid_tasks: list[InvalidTaskBody]


class JobViewBody(BaseModel):
    """How a job stands."""

    progress: JobProgress
    complete: bool
    usable_groups: int
    failed_groups: int
    invalid_tasks: list[InvalidTaskBody]


@router.put("")
async def submit(gateway: GatewayDependency, uid: str, submission: JobSubmission) -> LoadedJobBody:
    """Load a job; a repeated submission continues an interrupted load, or changes nothing."""
    if submission.uid != uid:
        message = f"must be {uid!r} as in the URL, not {submission.uid!r}"
        msg = f"uid {message}"
        raise InvalidInputError(msg, [FieldError("uid", message)])
    loaded = await gateway.jobs.submit(submission)
    return LoadedJobBody(
        groups=loaded.groups,
        rollouts=loaded.rollouts,
        invalid_tasks=_bodies(loaded.invalid_tasks),
    )


@router.get("")
async def view(gateway: GatewayDependency, uid: str) -> JobViewBody:
    """Tell how a job stands."""
    found = await gateway.jobs.view(uid)
    return JobViewBody(
        progress=found.progress,
        complete=found.complete,
        usable_groups=found.verdicts.usable,
        failed_groups=found.verdicts.failed,
        invalid_tasks=_bodies(found.invalid_tasks),
    )


@router.put("/state", status_code=204)
async def set_state(gateway: GatewayDependency, uid: str, state: JobState) -> None:
    """Suspend, resume, cancel, or change the priority."""
    await gateway.jobs.set_state(uid, state)


@router.delete("", status_code=204)
async def purge(gateway: GatewayDependency, uid: str) -> None:
    """Delete all that is known of a job; one that is unknown is deleted already."""
    await gateway.jobs.purge(uid)


def _bodies(invalid: list[InvalidTask]) -> list[InvalidTaskBody]:
    return [
        InvalidTaskBody(line=task.line, field=task.field, message=task.message) for task in invalid
    ]
