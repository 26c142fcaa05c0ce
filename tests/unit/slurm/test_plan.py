"""Whatever happens in whatever order, each pod has at most one job and no job lacks its pod."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from rollout_crds.pod import Pod, PodStatus
from rollout_slurm.job import JobKey, JobSeen
from rollout_slurm.plan import Action, Cancel, Refusal, SetStatus, Submit, plan_bridge
from rollout_slurm.states import STATES, is_active
from tests.unit.slurm.factories import BRIDGE, NOW, make_job, make_pod

UIDS = ("a", "b", "c")
jobs_seen = st.lists(
    st.tuples(st.sampled_from(UIDS), st.sampled_from(sorted(STATES))), max_size=6
).map(lambda rows: [make_job(number, uid, state) for number, (uid, state) in enumerate(rows, 1)])
steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(("create", "delete", "end", "forget")), st.sampled_from(UIDS)),
        st.tuples(st.just("crash"), st.integers(0, 5)),
    ),
    max_size=25,
)


def plan(
    pods: list[Pod], jobs: list[JobSeen], refusals: dict[str, Refusal] | None = None
) -> tuple[Action, ...]:
    return plan_bridge(pods, jobs, refusals or {}, bridge=BRIDGE, now=NOW)


class World:
    """Slurm and the pods, with a bridge that may be killed between any two of its actions."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.jobs: list[JobSeen] = []
        self.submitted: list[str] = []
        self._uids = 0

    def happen(self, what: str, which: str) -> None:
        if what == "create" and which not in self.pods:
            self._uids += 1
            self.pods[which] = make_pod(f"{which}{self._uids}")
        elif what == "delete":
            self.pods.pop(which, None)
        elif which in self.pods and what in {"end", "forget"}:
            uid = self.pods[which].metadata.uid
            if what == "forget" and self.pods[which].status.start_time is None:
                return  # Slurm remembers a job for minutes after its end
            mine = [job for job in self.jobs if job.key.pod_uid == uid]
            self.jobs = [job for job in self.jobs if job not in mine]
            if what == "end":
                self.jobs += [replace(job, state="TIMEOUT") for job in mine]

    def act(self, most: int | None = None) -> None:
        for action in plan(list(self.pods.values()), self.jobs)[:most]:
            match action:
                case Submit(pod):
                    self.submitted.append(pod.metadata.uid)
                    self.jobs.append(make_job(len(self.submitted), pod.metadata.uid, "PENDING"))
                case Cancel(job_ids):
                    self.jobs = [
                        replace(job, state="CANCELLED") if job.job_id in job_ids else job
                        for job in self.jobs
                    ]
                case SetStatus(pod, status):
                    name = next(n for n, p in self.pods.items() if p is pod)
                    self.pods[name] = pod.model_copy(update={"status": status})


@given(steps)
def test_no_pod_is_submitted_twice_however_often_the_bridge_is_killed(
    happenings: list[tuple[str, object]],
) -> None:
    world = World()
    for what, which in happenings:
        if what == "crash":
            assert isinstance(which, int)
            world.act(most=which)
        else:
            world.happen(what, str(which))
            world.act()
    assert len(set(world.submitted)) == len(world.submitted)


@given(st.sets(st.sampled_from(UIDS)), jobs_seen)
def test_it_comes_to_rest_with_one_job_for_each_pod(uids: set[str], jobs: list[JobSeen]) -> None:
    world = World()
    world.pods = {uid: make_pod(uid) for uid in uids}
    world.jobs = jobs
    for _ in range(4):
        world.act()
    assert not plan(list(world.pods.values()), world.jobs)
    active = [job.key.pod_uid for job in world.jobs if is_active(job)]
    assert len(set(active)) == len(active)
    alive = {u for u, p in world.pods.items() if p.status.phase not in {"Succeeded", "Failed"}}
    assert set(active) == alive


def test_jobs_of_another_bridge_are_left_alone() -> None:
    foreign = replace(make_job(1, "gone"), key=JobKey("elsewhere", "gone"))
    assert plan([], [foreign]) == ()


def test_the_first_of_two_jobs_of_a_pod_is_kept() -> None:
    jobs = [make_job(2, "a"), make_job(1, "a", "PENDING", "Priority")]
    cancel, status = plan([make_pod("a")], jobs)
    assert cancel == Cancel((2,))
    assert isinstance(status, SetStatus)
    assert (status.status.phase, status.status.reason) == ("Pending", "Priority")


def test_a_job_that_slurm_forgot_fails_its_pod() -> None:
    pod = make_pod("a", PodStatus(phase="Running", message="Slurm job 7 runs", start_time=NOW))
    (action,) = plan([pod], [])
    assert isinstance(action, SetStatus)
    assert (action.status.phase, action.status.reason) == ("Failed", "JobLost")
    assert "Slurm job 7" in action.status.message


def test_a_refusal_is_shown_and_tried_again_when_it_is_due() -> None:
    refusal = Refusal("SubmissionRefused", "Invalid account", NOW + timedelta(seconds=9))
    shown = PodStatus(phase="Pending", reason="SubmissionRefused", message="Invalid account")
    pod = make_pod("a")
    assert plan([pod], [], {"a": refusal}) == (SetStatus(pod, shown),)
    told = make_pod("a", shown)
    assert plan([told], [], {"a": refusal}) == ()
    assert plan([told], [], {"a": replace(refusal, retry_at=NOW)}) == (Submit(told),)
