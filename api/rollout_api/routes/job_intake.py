"""How the operator hands jobs over and steers them."""

from fastapi import APIRouter

from rollout_api.core.errors import InvalidInputError
from rollout_api.routes.dependencies import GatewayDependency
from rollout_crds.control import GatewayJob, JobState, JobSubmission, LoadedJob
from rollout_crds.validation import FieldError

router = APIRouter(prefix="/internal/v1/jobs/{uid}", tags=["operator"])


@router.put("")
async def submit(gateway: GatewayDependency, uid: str, submission: JobSubmission) -> LoadedJob:
    """Load a job; a repeated submission continues an interrupted load, or changes nothing."""
    if submission.uid != uid:
        message = f"must be {uid!r} as in the URL, not {submission.uid!r}"
        msg = f"uid {message}"
        raise InvalidInputError(msg, [FieldError("uid", message)])
    return await gateway.jobs.submit(submission)


@router.get("")
async def view(gateway: GatewayDependency, uid: str) -> GatewayJob:
    """Tell how a job stands."""
    return await gateway.jobs.view(uid)


@router.put("/state", status_code=204)
async def set_state(gateway: GatewayDependency, uid: str, state: JobState) -> None:
    """Suspend, resume, cancel, or change the priority."""
    await gateway.jobs.set_state(uid, state)


@router.delete("", status_code=204)
async def purge(gateway: GatewayDependency, uid: str) -> None:
    """Delete all that is known of a job; one that is unknown is deleted already."""
    await gateway.jobs.purge(uid)
