"""What is carried from the agent's sandbox into the grader's, with real sandboxes."""

import pytest

from rollout_crds.rolloutjob import RolloutSpec
from rollout_crds.wire import PreparedEnvironment
from rollout_stages.errors import StageError
from rollout_stages.sandboxes import NodeSandboxes

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(120)]


async def prepared(sandboxes: NodeSandboxes, spec: RolloutSpec) -> PreparedEnvironment:
    bare = PreparedEnvironment(image=spec.sandbox.image)
    async with sandboxes.fork(bare, spec.sandbox) as sandbox:
        await sandbox.write("kept.txt", b"base", 0o644)
        await sandbox.write("removed.txt", b"base", 0o644)
        return bare.model_copy(update={"layer": await sandbox.commit()})


async def test_grader_sees_the_agents_files_and_not_what_it_removed_or_did_elsewhere(
    sandboxes: NodeSandboxes, spec: RolloutSpec
) -> None:
    environment = await prepared(sandboxes, spec)
    async with sandboxes.fork(environment, spec.sandbox) as agent:
        script = (
            "rm removed.txt; echo new > kept.txt; mkdir -p d; echo x > d/e; echo bad > /etc/trap"
        )
        assert (await agent.bash(script, 30)).exit_code == 0
        archive = await agent.export(["."])
    async with sandboxes.fork(environment, spec.sandbox) as grader:
        await grader.restore(archive, ["."])
        found = await grader.command("cat kept.txt d/e; ls removed.txt /etc/trap", 30)
    assert found.output.startswith("new\nx\n")
    assert found.output.count("No such file") == 2


async def test_forks_of_one_environment_do_not_see_each_other(
    sandboxes: NodeSandboxes, spec: RolloutSpec
) -> None:
    environment = await prepared(sandboxes, spec)
    async with (
        sandboxes.fork(environment, spec.sandbox) as one,
        sandboxes.fork(environment, spec.sandbox) as other,
    ):
        await one.bash("echo changed > kept.txt", 30)
        assert (await other.bash("cat kept.txt", 30)).output.strip() == "base"


async def test_artifact_that_was_not_made_is_left_out(
    sandboxes: NodeSandboxes, spec: RolloutSpec
) -> None:
    environment = await prepared(sandboxes, spec)
    async with sandboxes.fork(environment, spec.sandbox) as agent:
        assert await agent.export(["answer.txt"]) == b""
        archive = await agent.export(["kept.txt", "answer.txt"])
    async with sandboxes.fork(environment, spec.sandbox) as grader:
        await grader.restore(archive, ["kept.txt", "answer.txt"])
        assert (await grader.command("cat kept.txt", 30)).output.strip() == "base"


async def test_artifact_that_cannot_be_carried_is_the_agents_fault(
    sandboxes: NodeSandboxes, spec: RolloutSpec
) -> None:
    environment = await prepared(sandboxes, spec)
    async with sandboxes.fork(environment, spec.sandbox) as agent:
        await agent.bash("truncate -s 1G huge", 30)
        with pytest.raises(StageError) as caught:
            await agent.export(["."])
    error = caught.value
    assert (error.reason, error.policy_error, error.retryable) == ("ArtifactUnusable", True, False)


async def test_sandbox_that_dies_is_no_fault_of_the_agent(
    sandboxes: NodeSandboxes, spec: RolloutSpec
) -> None:
    environment = await prepared(sandboxes, spec)
    async with sandboxes.fork(environment, spec.sandbox) as agent:
        await sandboxes.aclose()
        with pytest.raises(StageError) as caught:
            await agent.bash("true", 5)
    assert (caught.value.reason, caught.value.retryable) == ("SandboxDied", True)


async def test_limits_of_the_job_hold_for_tools(
    sandboxes: NodeSandboxes, spec: RolloutSpec
) -> None:
    resources = spec.sandbox.resources.model_copy(
        update={"output_kibibytes": 1, "action_timeout_seconds": 2}
    )
    limited = spec.sandbox.model_copy(update={"resources": resources})
    async with sandboxes.fork(PreparedEnvironment(image=limited.image), limited) as sandbox:
        assert len((await sandbox.bash("seq 100000", 30)).output) < 3000
        assert (await sandbox.bash("sleep 60", 30)).timed_out
        assert (await sandbox.ipython("import time; time.sleep(60)", 30)).timed_out
        assert "42" in (await sandbox.ipython("6 * 7", 30)).output
