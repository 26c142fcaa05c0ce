"""The engine's client against a server that behaves as told."""

import asyncio
import json
from collections.abc import AsyncIterator
from math import inf
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rollout_crds.trajectory import SamplingParams
from rollout_stages.engine.client import Patience, VLLMEngine
from rollout_stages.errors import StageError
from rollout_stages.ports import Generation, Prompt

QUICK = Patience(answer=5.0, silence=0.3, retry_first=0.01, retry_longest=0.05)
PROMPT = Prompt(
    token_ids=(1, 2),
    sampling=SamplingParams(temperature=1.0, top_p=1.0, top_k=-1, max_tokens=4, seed=3),
    stop_token_ids=(9,),
)
LOGPROBS = {"content": [{"token_id": 5, "logprob": -0.25}, {"token_id": 9, "logprob": -0.5}]}
GENERATED: dict[str, Any] = {
    "prompt_token_ids": [1, 2],
    "usage": {"prompt_tokens_details": {"cached_tokens": 1}},
    "choices": [
        {
            "token_ids": [5, 9],
            "logprobs": LOGPROBS,
            "finish_reason": "stop",
            "weight_versions": [{"version": "step-1", "start": 0, "end": 2}],
        }
    ],
}
COMPLETED: dict[str, Any] = {
    "choices": [
        {
            "prompt_token_ids": [1, 2],
            "token_ids": [5, 9],
            "logprobs": {"token_logprobs": [-0.25, -0.5]},
            "finish_reason": "stop",
        }
    ]
}


def choice(**changes: Any) -> dict[str, Any]:
    return {**GENERATED, "choices": [{**GENERATED["choices"][0], **changes}]}


class Server:
    """Answers with `answers` in turn, the last one for ever."""

    def __init__(self, socket: Path) -> None:
        self.url = f"unix://{socket}"
        self.answers: list[Response] = [JSONResponse(GENERATED)]
        self.requests: list[tuple[str, dict[str, Any]]] = []
        routes = [Route("/{path:path}", self._answer, methods=["POST"])]
        config = uvicorn.Config(
            Starlette(routes=routes), uds=str(socket), log_config=None, lifespan="off"
        )
        self.server = uvicorn.Server(config)

    async def _answer(self, request: Request) -> Response:
        self.requests.append((request.url.path, await request.json()))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    server = Server(tmp_path / "s")
    serving = asyncio.create_task(server.server._serve())
    while not server.server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    yield server
    server.server.should_exit = True
    await serving


async def generate(url: str, seconds: float = 5.0, prompt: Prompt = PROMPT) -> Generation:
    engine = VLLMEngine(url, "m", QUICK)
    try:
        return await engine.generate(prompt, asyncio.get_running_loop().time() + seconds)
    finally:
        await engine.aclose()


async def test_answer_is_read_unchanged(server: Server) -> None:
    generation = await generate(server.url)
    assert generation.token_ids == (5, 9)
    assert generation.logprobs == (-0.25, -0.5)
    assert generation.finish_reason == "stop"
    assert generation.weight_versions[0].model_dump() == {"version": "step-1", "start": 0, "end": 2}
    assert generation.cached_prompt_tokens == 1


async def test_request_has_ids_limits_and_sampling(server: Server) -> None:
    await generate(server.url, prompt=Prompt(PROMPT.token_ids, PROMPT.sampling, "text", (9,)))
    ((path, body),) = server.requests
    assert path == "/inference/v1/generate"
    assert body["token_ids"] == [1, 2]
    assert body["model"] == "m"
    parameters = body["sampling_params"]
    assert (parameters["max_tokens"], parameters["seed"]) == (4, 3)
    assert parameters["stop_token_ids"] == [9]
    assert parameters["structured_outputs"] == {"choice": ["text"]}


@pytest.mark.parametrize("status", [403, 404, 405])
async def test_server_without_generate_is_asked_for_completions(
    server: Server, status: int
) -> None:
    server.answers = [Response(status_code=status), JSONResponse(COMPLETED)]
    generation = await generate(server.url)
    assert (generation.token_ids, generation.logprobs) == ((5, 9), (-0.25, -0.5))
    path, body = server.requests[1]
    assert path == "/v1/completions"
    assert (body["prompt"], body["return_token_ids"], body["logprobs"]) == ([1, 2], True, 0)


@pytest.mark.parametrize(
    "hiccup",
    [
        Response(status_code=503),
        Response(status_code=500),
        Response(status_code=429),
        Response("no json"),
        JSONResponse(choice(finish_reason="error")),
    ],
)
async def test_passing_trouble_is_waited_for(server: Server, hiccup: Response) -> None:
    server.answers = [hiccup, hiccup, JSONResponse(GENERATED)]
    assert (await generate(server.url)).token_ids == (5, 9)
    assert len(server.requests) == 3


async def test_trouble_is_logged_once_while_it_lasts(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    trouble = [Response("boom", 500)] * 5
    server.answers = [*trouble, JSONResponse(GENERATED), *trouble, JSONResponse(GENERATED)]
    engine = VLLMEngine(server.url, "m", QUICK)
    for _ in range(2):
        await engine.generate(PROMPT, asyncio.get_running_loop().time() + 5)
    await engine.aclose()
    assert [record.message for record in caplog.records] == [
        f"the engine at {server.url} is asked again: HTTP 500: boom"
    ] * 2


async def test_a_path_that_is_missing_for_a_moment_does_not_change_how_it_is_asked(
    server: Server,
) -> None:
    nothing = Response("not here", 404)
    server.answers = [nothing, nothing, JSONResponse(GENERATED)]
    engine = VLLMEngine(server.url, "m", QUICK)
    deadline = asyncio.get_running_loop().time() + 5
    with pytest.raises(StageError):
        await engine.generate(PROMPT, deadline)
    assert (await engine.generate(PROMPT, deadline)).weight_versions
    await engine.aclose()


async def test_pause_is_waited_for_longer_than_silence(server: Server) -> None:
    server.answers = [Response(status_code=503)] * 40 + [JSONResponse(GENERATED)]
    before = asyncio.get_running_loop().time()
    await generate(server.url)
    assert asyncio.get_running_loop().time() - before > QUICK.silence


async def failure(url: str, seconds: float = 5.0) -> StageError:
    with pytest.raises(StageError) as caught:
        await generate(url, seconds)
    return caught.value


async def test_server_that_is_gone_is_given_up(tmp_path: Path) -> None:
    error = await failure(f"unix://{tmp_path}/nobody")
    assert (error.reason, error.where, error.retryable) == ("ModelUnavailable", "model", True)


async def test_pause_is_not_waited_for_beyond_the_deadline(server: Server) -> None:
    server.answers = [Response(status_code=503)]
    assert (await failure(server.url, seconds=0.1)).reason == "ModelUnavailable"


async def test_refusal_carries_the_engines_words(server: Server) -> None:
    server.answers = [JSONResponse({"error": {"message": "too long"}}, 400)]
    error = await failure(server.url)
    assert (error.reason, error.retryable) == ("ModelRequestRefused", False)
    assert "too long" in error.message
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        {**GENERATED, "prompt_token_ids": [1, 3]},
        choice(token_ids=None),
        choice(logprobs=None),
        choice(logprobs={"content": LOGPROBS["content"][:1]}),
        choice(logprobs={"content": LOGPROBS["content"][::-1]}),
        choice(logprobs={"content": [LOGPROBS["content"][0], {"token_id": 9, "logprob": -inf}]}),
        choice(logprobs={"content": [LOGPROBS["content"][0], {"token_id": 9, "logprob": 3.0}]}),
        choice(logprobs={"content": [LOGPROBS["content"][0], {"token_id": 9, "logprob": "-1"}]}),
        choice(logprobs={"content": ["a", "b"]}),
        choice(logprobs=[-0.25, -0.5]),
        choice(token_ids=[5, 2**31]),
        choice(token_ids=[5, -1]),
        choice(token_ids=[True, 9]),
        choice(token_ids=[], logprobs={"content": []}, weight_versions=[]),
        choice(
            token_ids=[5, 9] * 3, logprobs={"content": LOGPROBS["content"] * 3}, weight_versions=[]
        ),
        choice(weight_versions="step-1"),
        choice(weight_versions=[{"version": "step-1"}]),
        choice(weight_versions=[{"version": "step-1", "start": 2, "end": 1}]),
        choice(weight_versions=[{"version": "step-1", "start": 0, "end": 3}]),
        {**GENERATED, "choices": []},
        {**GENERATED, "choices": "none"},
        {**GENERATED, "usage": "little"},
        [GENERATED],
        None,
    ],
    ids=[
        *("prompt", "no ids", "no log-probs", "too few", "of other tokens", "-inf", "above 0"),
        *("text", "no entries", "no object", "id too large", "id below 0", "id a boolean"),
        *("no token", "too many tokens", "no spans", "half a span", "span backwards"),
        *("span too long", "no choice", "choices are text", "usage is text", "list", "null"),
    ],
)
async def test_answer_that_is_no_exact_record_is_refused(
    server: Server, answer: dict[str, Any]
) -> None:
    server.answers = [Response(json.dumps(answer))]
    assert (await failure(server.url)).reason == "ModelRequestRefused"
