"""Where stage pods run, if not on the operator's own cluster: as jobs of a Slurm cluster.

The operator hands the placement to the Slurm bridge in an annotation of each pod.
"""

from typing import Annotated

from pydantic import Field

from rollout_crds.base import ResourceModel, matching

SLURM_SCHEDULER = "rollout-slurm"
"""`spec.schedulerName` of the pods that the Slurm bridge runs."""
SLURM_ANNOTATION = "slurm.rollout-operator.dev/placement"
"""Annotation of such a pod: its SlurmPlacement as JSON."""

SlurmName = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9_][A-Za-z0-9_.,-]*$",
        "must consist of letters, digits and `_ . , -`, as Slurm's names do",
        max_length=256,
    ),
]
Gres = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9_][A-Za-z0-9_.:,-]*$",
        "must be a list of generic resources, such as `gpu:1` or `gpu:a100:2`",
        max_length=256,
    ),
]
Constraint = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9_\[\]()&|*,.-]+$",
        "must consist of features and `& | , * ( ) [ ]`",
        max_length=256,
    ),
]
SbatchArgument = Annotated[
    str,
    matching(
        r"^--(clusters|contiguous|exclude|exclusive|hint|licenses|mail-type|mail-user|"
        r"mem-per-cpu|nice|nodelist|prefer|switches|tmp|wckey)(=[A-Za-z0-9_.,:@*\[\]()-]+)?$",
        "must be one of --clusters, --contiguous, --exclude, --exclusive, --hint, --licenses, "
        "--mail-type, --mail-user, --mem-per-cpu, --nice, --nodelist, --prefer, --switches, "
        "--tmp and --wckey, with its value after `=`",
        max_length=512,
    ),
]


class SlurmPlacement(ResourceModel):
    """What each stage pod asks of Slurm, as one job; what is unset is the site's default."""

    partition: SlurmName | None = None
    """Partition, or several separated by commas."""
    account: SlurmName | None = None
    """Account to charge."""
    qos: SlurmName | None = None
    """Quality of service."""
    reservation: SlurmName | None = None
    """Reservation to run in."""
    time_limit_minutes: Annotated[int, Field(ge=1, le=525_600)] | None = None
    """Wall time of one job. A worker hands back what it works on before it is over, and the pod
    is replaced."""
    cpus: Annotated[int, Field(ge=1, le=65_536)] = 1
    """Processors of one job."""
    memory_mebibytes: Annotated[int, Field(ge=16, le=16_777_216)] | None = None
    """Memory of one job, in MiB."""
    gres: Gres | None = None
    """Generic resources, such as `gpu:1`."""
    constraint: Constraint | None = None
    """Features that the node must have."""
    extra_args: Annotated[list[SbatchArgument], Field(max_length=16)] = Field(default_factory=list)
    """More arguments of `sbatch`; only those that cannot change what is run."""


class Placement(ResourceModel):
    """Where the stage pods run."""

    slurm: SlurmPlacement
    """As jobs of the Slurm cluster whose bridge (`rollout-slurm`) serves this gateway."""
