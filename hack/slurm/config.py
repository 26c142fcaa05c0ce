"""The files that configure a one-node cluster, as pure functions of what it shall look like."""

from __future__ import annotations

import getpass
import socket
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Ports:
    """TCP ports on loopback."""

    controller: int
    node: int
    rest: int


@dataclass(frozen=True)
class Shape:
    """What the cluster has, whatever the machine has."""

    cpus: int = 16
    memory_mib: int = 16_000
    gpus: int = 2
    """Pretended ones: jobs see CUDA_VISIBLE_DEVICES and no device."""
    minimum_job_age_seconds: int = 300
    """How long the controller remembers a job that has ended."""
    kill_wait_seconds: int = 10
    """From SIGTERM to SIGKILL."""


@dataclass(frozen=True)
class Layout:
    """Where the cluster keeps what, and who it belongs to."""

    base: Path
    ports: Ports
    shape: Shape = field(default_factory=Shape)
    user: str = field(default_factory=getpass.getuser)
    host: str = field(default_factory=lambda: socket.gethostname().partition(".")[0])

    @property
    def conf(self) -> Path:
        """The file that SLURM_CONF names."""
        return self.base / "slurm.conf"

    @property
    def munge_socket(self) -> Path:
        """Where munged answers."""
        return self.base / "munge" / "socket"

    @property
    def jwt_key(self) -> Path:
        """What tokens are signed with."""
        return self.base / "state" / "jwt_hs256.key"

    def files(self, *, is_old: bool) -> dict[str, str]:
        """Configuration files by name; `is_old`: for a Slurm before 23.02."""
        return {
            "slurm.conf": self._slurm(is_old),
            "gres.conf": self._gres(),
            "cgroup.conf": "CgroupAutomount=no\n" if is_old else "CgroupPlugin=disabled\n",
        }

    def _gres(self) -> str:
        gpus = self.shape.gpus
        last = f"[0-{gpus - 1}]" if gpus > 1 else "0"
        return f"NodeName={self.host} Name=gpu File=/dev/loop{last}\n" if gpus else ""

    def _slurm(self, is_old: bool) -> str:
        base, shape, ports = self.base, self.shape, self.ports
        gres = f"Gres=gpu:{shape.gpus}" if shape.gpus else ""
        only_old = ("TaskPlugin=task/none", "SwitchType=switch/none") if is_old else ()
        lines = [
            "ClusterName=one",
            f"SlurmctldHost={self.host}(127.0.0.1)",
            *(f"SlurmUser={self.user}", f"SlurmdUser={self.user}"),
            *(f"SlurmctldPort={ports.controller}", f"SlurmdPort={ports.node}"),
            *("AuthType=auth/munge", f"AuthInfo=socket={self.munge_socket}", "CredType=cred/munge"),
            *("AuthAltTypes=auth/jwt", f"AuthAltParameters=jwt_key={self.jwt_key}"),
            *(f"StateSaveLocation={base}/state", f"SlurmdSpoolDir={base}/spool"),
            *(f"SlurmctldPidFile={base}/ctld.pid", f"SlurmdPidFile={base}/slurmd.pid"),
            # Plain process tracking: memory is polled instead of limited by cgroups.
            *("ProctrackType=proctrack/linuxproc", *only_old),
            *("JobAcctGatherType=jobacct_gather/linux", "JobAcctGatherFrequency=2"),
            "JobAcctGatherParams=OverMemoryKill",
            *("PropagateResourceLimits=NONE", "MpiDefault=none", "ReturnToService=2"),
            "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny",
            # React at once, for tests wait for it.
            *("SchedulerType=sched/backfill", "PriorityType=priority/basic"),
            "SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,sched_interval=2,"
            "bf_interval=2,bf_window=60,bf_continue",
            *("SelectType=select/cons_tres", "SelectTypeParameters=CR_Core_Memory"),
            *("PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE"),
            *(f"KillWait={shape.kill_wait_seconds}", f"MinJobAge={shape.minimum_job_age_seconds}"),
            *("MaxJobCount=50000", "MaxArraySize=10001", "RequeueExit=99"),
            *("SlurmctldTimeout=30", "SlurmdTimeout=60"),
            *("AccountingStorageType=accounting_storage/none", "JobCompType=jobcomp/none"),
            *(["GresTypes=gpu"] if gres else []),
            "SlurmdParameters=config_overrides",
            f"NodeName={self.host} NodeAddr=127.0.0.1 CPUs={shape.cpus} "
            f"RealMemory={shape.memory_mib} {gres} State=UNKNOWN",
            f"PartitionName=main Nodes={self.host} Default=YES MaxTime=1-00:00:00 "
            "DefaultTime=01:00:00 DefMemPerCPU=1000 State=UP PriorityTier=2 PreemptMode=OFF",
            f"PartitionName=scavenge Nodes={self.host} MaxTime=1-00:00:00 "
            "DefMemPerCPU=1000 State=UP PriorityTier=1 GraceTime=5 PreemptMode=REQUEUE",
        ]
        return "\n".join(lines) + "\n"
