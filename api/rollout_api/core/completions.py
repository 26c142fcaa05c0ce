"""A completion made ready to be stored: checked, digested, its trajectory measured and encoded.

This costs in proportion to the trajectory, so it is done before the transaction.
"""

import hashlib
from dataclasses import dataclass

from pydantic import ValidationError

from rollout_api.core.compression import compress
from rollout_api.core.errors import InvalidInputError
from rollout_crds.result import Stage
from rollout_crds.trajectory import Trajectory, provenance_issues
from rollout_crds.validation import FieldError, field_errors
from rollout_crds.wire import (
    Completion,
    EvalDone,
    HandedBack,
    InitDone,
    RunDone,
    StageFailed,
    StageResult,
)

_SUCCESS_OF_STAGE = {Stage.INIT: InitDone, Stage.RUN: RunDone, Stage.EVAL: EvalDone}


@dataclass(frozen=True, slots=True)
class TrajectorySummary:
    """What is known of a trajectory without reading it again."""

    body: bytes
    """Compressed JSON."""
    turns: int
    prompt_tokens: int
    output_tokens: int
    provenance_issues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PreparedCompletion:
    """A completion and what was derived from it."""

    completion: Completion
    digest: str
    trajectory: TrajectorySummary | None


def prepare(body: bytes) -> PreparedCompletion:
    """Read a completion, check it against its work id and derive what will be stored.

    Raises:
        InvalidInputError: It is none, or its result does not belong to the stage of the work id.
    """
    completion = _parse(body)
    _check_stage(completion.work_id, completion.result)
    trajectory = _trajectory(completion.result)
    rest = completion.result.model_dump_json(by_alias=True, exclude={"trajectory"})
    digest = hashlib.sha256(rest.encode())
    if trajectory is None:
        return PreparedCompletion(completion, digest.hexdigest(), None)
    text = trajectory.model_dump_json(by_alias=True).encode()
    digest.update(text)
    return PreparedCompletion(completion, digest.hexdigest(), _summarise(trajectory, text))


def _parse(body: bytes) -> Completion:
    try:
        return Completion.model_validate_json(body)
    except ValidationError as error:
        msg = "not a completion"
        raise InvalidInputError(msg, field_errors(error, Completion)) from error


def _trajectory(result: StageResult) -> Trajectory | None:
    return result.trajectory if isinstance(result, RunDone | StageFailed) else None


def _summarise(trajectory: Trajectory, text: bytes) -> TrajectorySummary:
    return TrajectorySummary(
        body=compress(text),
        turns=len(trajectory.calls),
        prompt_tokens=trajectory.prompt_tokens,
        output_tokens=trajectory.output_tokens,
        provenance_issues=provenance_issues(trajectory),
    )


def _check_stage(work_id: str, result: StageResult) -> None:
    name = work_id.partition(":")[0]
    if name not in {stage.value for stage in Stage}:
        message = f"must start with `init:`, `run:` or `eval:`, not {work_id!r}"
        msg = "unknown work id"
        raise InvalidInputError(msg, [FieldError("work_id", message)])
    stage = Stage(name)
    if isinstance(result, HandedBack):
        return
    if isinstance(result, StageFailed):
        if result.failure.stage is not stage:
            message = f"must be {stage.value!r}, the stage of {work_id!r}"
            field = FieldError("result.failure.stage", message)
            msg = "failure of another stage"
            raise InvalidInputError(msg, [field])
        return
    if not isinstance(result, _SUCCESS_OF_STAGE[stage]):
        message = f"must be {stage.value!r}, 'failed' or 'handed_back' for {work_id!r}"
        msg = "result of another stage"
        raise InvalidInputError(msg, [FieldError("result.kind", message)])
