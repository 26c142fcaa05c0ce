"""An LLMPool: existing endpoints, launched servers, and what the gateway is told of them."""

from dataclasses import replace

import pytest

from rollout_crds.pod import PodStatus
from rollout_crds.reasons import ConditionType
from rollout_operator.conditions import find
from rollout_operator.health import TIMEOUTS_TOLERATED, next_health
from rollout_operator.observed import BackendHealth, LLMPoolObserved, ProbeResult
from rollout_operator.plan import RegisterLLMPool, UnregisterLLMPool
from rollout_operator.plan_llm_pool import (
    PROBE_HEALTHY_SECONDS,
    PROBE_UNHEALTHY_SECONDS,
    plan_llm_pool,
)
from tests.unit.operator.factories import (
    NOW,
    SITE,
    make_endpoint_pool,
    make_llm_pool,
    running,
    seconds,
)

URL, OTHER = "http://engine-a:8000", "unix:///run/engine-b.sock"
HEALTHY = BackendHealth("healthy", max_model_len=4096)


def down(since=NOW, message="http://x: connection refused"):
    return BackendHealth("unreachable", message, failing_since=since)


def observed(**health):
    return LLMPoolObserved(site=SITE, health=tuple(health.get("health", {}).items()))


def ready(plan):
    return find(plan.status.conditions, ConditionType.READY)


def test_a_healthy_endpoint_makes_the_pool_ready_and_is_registered():
    pool = make_endpoint_pool(URL)
    plan = plan_llm_pool(pool, observed(health={URL: HEALTHY}), NOW)
    assert (ready(plan).status, ready(plan).reason) == ("True", "BackendsHealthy")
    assert plan.status.healthy_backends == 1
    (action,) = plan.gateway
    (backend,) = action.registration.backends
    assert (backend.url, backend.healthy, backend.max_model_len) == (URL, True, 4096)
    assert action.registration.spec == pool.spec
    assert plan.requeue_after == PROBE_HEALTHY_SECONDS


def test_one_healthy_backend_is_enough_and_the_other_is_named():
    plan = plan_llm_pool(
        make_endpoint_pool(URL, OTHER),
        observed(health={URL: HEALTHY, OTHER: down(message=f"{OTHER}: refused")}),
        NOW,
    )
    assert ready(plan).status == "True"
    assert ready(plan).message == f"1 of 2 backends healthy; {OTHER}: refused"


def test_unreachable_endpoints_are_stated_with_the_cause():
    plan = plan_llm_pool(make_endpoint_pool(URL), observed(health={URL: down()}), NOW)
    assert (ready(plan).status, ready(plan).reason) == ("False", "BackendsUnreachable")
    assert ready(plan).message == (
        "http://x: connection refused; start the servers there, or correct `spec.endpoints`"
    )
    assert [(e.type, e.reason) for e in plan.events] == [("Warning", "BackendsUnreachable")]
    assert plan.requeue_after == PROBE_UNHEALTHY_SECONDS


def test_a_long_gone_endpoint_is_probed_less_often():
    plan = plan_llm_pool(
        make_endpoint_pool(URL), observed(health={URL: down()}), NOW + seconds(3600)
    )
    assert plan.requeue_after == PROBE_HEALTHY_SECONDS


def test_a_server_of_another_model_is_told_apart_from_a_dead_one():
    health = next_health(None, ProbeResult(URL, models=(("other", None),)), "m", NOW)
    plan = plan_llm_pool(make_endpoint_pool(URL), observed(health={URL: health}), NOW)
    assert (ready(plan).status, ready(plan).reason) == ("False", "ModelNotServed")
    assert "serves `other`, not `m`: correct `spec.model`" in ready(plan).message
    assert not plan.gateway[0].registration.backends[0].healthy


def test_the_same_registration_is_not_sent_again():
    pool, around = make_endpoint_pool(URL), observed(health={URL: HEALTHY})
    first = plan_llm_pool(pool, around, NOW)
    again = replace(around, registration=first.gateway[0].registration)
    pool.status = first.status
    assert plan_llm_pool(pool, again, NOW + seconds(5)).is_empty


def test_a_backend_that_falls_ill_is_registered_as_such():
    pool, around = make_endpoint_pool(URL), observed(health={URL: HEALTHY})
    registration = plan_llm_pool(pool, around, NOW).gateway[0].registration
    ill = replace(observed(health={URL: down()}), registration=registration)
    (action,) = plan_llm_pool(pool, ill, NOW).gateway
    assert isinstance(action, RegisterLLMPool)
    assert not action.registration.backends[0].healthy


def test_a_launched_server_gets_what_token_records_need():
    pool = make_llm_pool(
        launch={"modelPath": "tiny", "args": ["--seed", "9"]}, logprobsMode="raw_logprobs"
    )
    (pod,) = plan_llm_pool(pool, observed(), NOW).create_pods
    assert pod.metadata.name == "model-engine-0"
    assert pod.spec.restart_policy == "Always"
    container = pod.spec.containers[0]
    assert container.command == ["vllm-python", "-m", "vllm.entrypoints.openai.api_server"]
    options = dict(zip(container.args[::2], container.args[1::2], strict=True))
    assert options["--model"] == "$(ROLLOUT_MODELS)/tiny"
    assert options["--served-model-name"] == "m"
    assert options["--uds"] == "$(ROLLOUT_SOCKET)"
    env = {variable.name: variable.value for variable in container.env}
    assert f"unix://{env['ROLLOUT_SOCKET']}" == SITE.engine_url(pod.metadata.name, pod)
    assert options["--logprobs-mode"] == "raw_logprobs"
    assert container.args[-2:] == ["--seed", "9"]


def test_an_absolute_model_path_stays_as_it_is():
    pool = make_llm_pool(launch={"modelPath": "/models/tiny"})
    (pod,) = plan_llm_pool(pool, observed(), NOW).create_pods
    assert "/models/tiny" in pod.spec.containers[0].args


def test_replicas_draw_different_samples():
    pool = make_llm_pool(launch={"modelPath": "tiny", "replicas": 2})
    pods = plan_llm_pool(pool, observed(), NOW).create_pods
    seeds = {pod.spec.containers[0].args[-1] for pod in pods}
    assert len(seeds) == 2


def launched(pool, health, *, status=None):
    pods = running(plan_llm_pool(pool, observed(), NOW).create_pods)
    pods = tuple(
        pod.model_copy(
            update={
                "metadata": pod.metadata.model_copy(update={"creation_timestamp": NOW}),
                "status": status or pod.status,
            }
        )
        for pod in pods
    )
    around = {SITE.engine_url(pod.metadata.name, pod): health for pod in pods}
    return LLMPoolObserved(site=SITE, pods=pods, health=tuple(around.items()))


def test_a_launched_server_that_does_not_answer_yet_is_starting():
    pool = make_llm_pool()
    plan = plan_llm_pool(pool, launched(pool, down()), NOW + seconds(20))
    assert (ready(plan).status, ready(plan).reason) == ("False", "BackendsStarting")
    assert plan.delete_pods == ()


def test_a_launched_server_that_never_answers_is_replaced():
    pool = make_llm_pool(launch={"modelPath": "tiny", "startupTimeoutSeconds": 30})
    around = launched(pool, down(since=NOW - seconds(900)))
    assert plan_llm_pool(pool, around, NOW + seconds(29)).delete_pods == ()
    assert plan_llm_pool(pool, around, NOW + seconds(30)).delete_pods == around.pods


def test_a_crashing_server_is_stated_with_its_end():
    pool = make_llm_pool()
    status = PodStatus(phase="Running", reason="CrashLoopBackOff", message="exited with code 1")
    plan = plan_llm_pool(pool, launched(pool, down(), status=status), NOW)
    assert ready(plan).reason == "BackendsUnreachable"
    assert ready(plan).message == "pod `model-engine-0`: CrashLoopBackOff: exited with code 1"


def test_changed_arguments_replace_the_server():
    pool = make_llm_pool()
    around = launched(pool, HEALTHY)
    changed = make_llm_pool(launch={"modelPath": "tiny", "args": ["--enforce-eager"]})
    assert plan_llm_pool(changed, around, NOW).delete_pods == around.pods


def test_deletion_takes_the_engines_from_the_gateway():
    pool = make_llm_pool(meta={"deletion_timestamp": NOW})
    plan = plan_llm_pool(pool, observed(), NOW)
    assert plan.gateway == (UnregisterLLMPool("default", "model"),)
    assert plan.release_finalizer


@pytest.mark.parametrize("length", [20, 90, 130])
def test_sockets_fit_into_the_kernel_s_limit(length):
    site = replace(SITE, run_dir=SITE.run_dir / ("d" * 60))
    url = site.engine_url("p" * min(length, 63), None)
    assert len(url.removeprefix("unix://")) <= 107


def test_a_busy_engine_survives_some_slow_probes():
    slow = ProbeResult(URL, error="no answer in 5 s", timed_out=True)
    health = HEALTHY
    for _ in range(TIMEOUTS_TOLERATED):
        health = next_health(health, slow, "m", NOW)
        assert (health.state, health.max_model_len) == ("healthy", 4096)
    assert next_health(health, slow, "m", NOW).state == "unreachable"


def test_slow_probes_count_only_in_a_row():
    slow = ProbeResult(URL, error="no answer in 5 s", timed_out=True)
    good = ProbeResult(URL, models=(("m", 4096),))
    health = HEALTHY
    for result in [slow, slow, good, slow, slow]:
        health = next_health(health, result, "m", NOW)
    assert health.state == "healthy"


def test_a_refused_connection_counts_at_once_and_its_first_time_is_kept():
    refused = ProbeResult(URL, error="connection refused")
    first = next_health(HEALTHY, refused, "m", NOW)
    assert first.state == "unreachable"
    assert next_health(first, refused, "m", NOW + seconds(9)).failing_since == NOW
