"""The file in which an administrator says what the pods of each role get besides their program."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from rollout_operator.sites import PodTemplate, Role

_IMAGES: dict[Role, str] = {
    "stage": "rollout-operator/stage:latest",
    "engine": "rollout-operator/engine:latest",
}


class _Template(BaseModel):
    model_config = ConfigDict(extra="forbid")

    image: str
    pod: dict[str, Any] = Field(default_factory=dict)
    container: dict[str, Any] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)


class _Templates(BaseModel):
    model_config = ConfigDict(extra="forbid")

    stage: _Template = _Template(image=_IMAGES["stage"])
    engine: _Template = _Template(image=_IMAGES["engine"])


def load_templates(path: Path | None) -> Mapping[Role, PodTemplate]:
    """Read the templates; without a file, images of the project's own names.

    Raises:
        OSError: The file cannot be read.
        ValueError: It has unknown or ill-formed fields.
    """
    found = _Templates.model_validate(yaml.safe_load(path.read_text()) if path else {})
    roles: dict[Role, _Template] = {"stage": found.stage, "engine": found.engine}
    return {role: PodTemplate(**dict(template)) for role, template in roles.items()}
