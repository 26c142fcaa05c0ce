"""Builds the Slurm job of a stage pod: a pure function of the pod and of the site.

The script carries nothing secret. It runs the pod's command from a directory of its own on the
node, passes SIGTERM on, so that the worker hands back what it works on, and cleans up.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from rollout_crds.placement import SLURM_ANNOTATION, SlurmPlacement
from rollout_crds.pod import Pod
from rollout_slurm.errors import SlurmRefused
from rollout_slurm.job import JobKey, SlurmJob

_LONGEST_NOTICE = 120
_SCRIPT = """\
#!/bin/bash
{exports}
export ROLLOUT_WORK_DIR={scratch}/rollout-$SLURM_JOB_ID
mkdir -m 700 -p "$ROLLOUT_WORK_DIR" || exit
{command} &
worker=$!
trap 'kill -TERM "$worker" 2>/dev/null' TERM INT
wait "$worker"
code=$?
while kill -0 "$worker" 2>/dev/null; do
  wait "$worker"
  code=$?
done
rm -rf "$ROLLOUT_WORK_DIR"
exit "$code"
"""


@dataclass(frozen=True)
class Site:
    """What jobs find on the compute nodes."""

    bridge: str
    """Name of this bridge, in the comments of its jobs."""
    environment: Mapping[str, str]
    """Variables of every worker, none of them secret."""
    logs: Path
    """Directory for the jobs' output, shared with the compute nodes."""
    scratch: str = "/tmp"  # noqa: S108 - each job makes a directory of mode 0700 in it
    """Directory on each node for the jobs' working directories."""


def job_for_pod(pod: Pod, site: Site) -> SlurmJob:
    """The job that runs a pod.

    Raises:
        SlurmRefused: The pod's placement or command is not usable.
    """
    placement = _placement(pod)
    minutes = placement.time_limit_minutes
    meta = pod.metadata
    name = meta.name if meta.namespace == "default" else f"{meta.namespace}.{meta.name}"
    return SlurmJob(
        name=meta.name,
        key=JobKey(site.bridge, meta.uid),
        script=_script(pod, site),
        output=str(site.logs / f"{name}.log").replace("%", "%%"),
        directory=str(site.logs),
        placement=placement,
        signal_seconds=None if minutes is None else min(_LONGEST_NOTICE, minutes * 30),
    )


def _placement(pod: Pod) -> SlurmPlacement:
    text = pod.metadata.annotations.get(SLURM_ANNOTATION, "{}")
    try:
        return SlurmPlacement.model_validate_json(text)
    except ValidationError as error:
        msg = f"annotation `{SLURM_ANNOTATION}` is not a placement: {error}"
        raise SlurmRefused(msg) from error


def _script(pod: Pod, site: Site) -> str:
    if not pod.spec.containers or not pod.spec.containers[0].command:
        msg = "the pod has no command to run"
        raise SlurmRefused(msg)
    container = pod.spec.containers[0]
    variables = {
        **site.environment,
        **{variable.name: variable.value for variable in container.env},
        "ROLLOUT_POD_NAME": pod.metadata.name,
    }
    exports = "\n".join(f"export {name}={shlex.quote(text)}" for name, text in variables.items())
    return _SCRIPT.format(
        exports=exports,
        scratch=shlex.quote(site.scratch),
        command=shlex.join([*container.command, *container.args]),
    )
