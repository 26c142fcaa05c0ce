"""The LLM stub answers as the real engine does, and plays scripts without keeping state."""

from pathlib import Path
from typing import Any

import httpx2
import pytest
from tokenizers import Tokenizer

from tests.support.engine import Engine, cached, tiny_engine
from tests.support.stub_llm import stub_llm

__all__ = ["tiny_engine"]
PROMPT = [10, 20, 30, 40, 50]
SAMPLING = {"max_tokens": 3, "temperature": 1.0, "seed": 7, "logprobs": 1}


def generate(client: httpx2.Client, prompt: list[int], **sampling: Any) -> Any:
    body = {"token_ids": prompt, "sampling_params": {**SAMPLING, **sampling}, "model": "m"}
    reply = client.post("/inference/v1/generate", json={**body, "return_token_ids": True})
    return reply.json()


def shape(value: Any) -> Any:
    """Return the names and types of a JSON value."""
    if isinstance(value, dict):
        return {name: shape(part) for name, part in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


@pytest.mark.engine
@pytest.mark.timeout(240)
def test_a_reply_has_the_shape_of_the_real_engines(tiny_engine: Engine) -> None:
    with (
        stub_llm() as stub,
        httpx2.Client(base_url=stub.url) as fake,
        httpx2.Client(base_url=tiny_engine.url, timeout=60) as real,
    ):
        assert shape(generate(fake, PROMPT)) == shape(generate(real, PROMPT))
        for refused in ([], [4096], list(range(4096)) * 20):
            answers = [generate(client, refused) for client in (fake, real)]
            assert [answer["error"]["code"] for answer in answers] == [400, 400]
        cards = [client.get("/v1/models").json()["data"][0] for client in (fake, real)]
        assert {"id", "object", "max_model_len"} <= cards[0].keys() & cards[1].keys()
        assert [client.get("/health").status_code for client in (fake, real)] == [200, 200]


def test_the_same_prompt_and_seed_give_the_same_tokens(tmp_path: Path) -> None:
    uds = tmp_path / "llm.sock"
    with (
        stub_llm(uds=uds) as stub,
        httpx2.Client(base_url=stub.url, transport=httpx2.HTTPTransport(uds=str(uds))) as client,
    ):
        first, again, other = (generate(client, PROMPT, seed=seed) for seed in (1, 1, 2))
    choices = [reply["choices"][0] for reply in (first, again, other)]
    assert choices[0] == choices[1]
    assert choices[0]["token_ids"] != choices[2]["token_ids"]


def test_an_answer_ends_at_the_limit_or_with_the_end_token() -> None:
    with stub_llm(output_tokens=8) as stub, httpx2.Client(base_url=stub.url) as client:
        cut = generate(client, PROMPT, max_tokens=5)["choices"][0]
        whole = generate(client, PROMPT, max_tokens=100)["choices"][0]
    assert (len(cut["token_ids"]), cut["finish_reason"]) == (5, "length")
    assert (len(whole["token_ids"]), whole["finish_reason"]) == (8, "stop")
    assert whole["token_ids"][-1] == 4095
    assert [entry["token_id"] for entry in whole["logprobs"]["content"]] == whole["token_ids"]


def test_a_script_answers_by_the_number_of_turns_in_the_prompt() -> None:
    folder = cached("models", "tiny-qwen3")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    script = {1: '<tool_call>\n{"name": "bash"}\n</tool_call>', 2: "done"}
    turn = "<|im_start|>assistant\n"
    prompts = [
        f"<|im_start|>user\nfix<|im_end|>\n{turn}" + f"x<|im_end|>\n{turn}" * i for i in (0, 1)
    ]
    with (
        stub_llm(tokenizer=folder, script=script) as stub,
        httpx2.Client(base_url=stub.url) as client,
    ):
        for number, prompt in enumerate(prompts, start=1):
            reply = generate(client, tokenizer.encode(prompt).ids, max_tokens=100)["choices"][0]
            assert tokenizer.decode(reply["token_ids"]) == script[number]
            assert tokenizer.id_to_token(reply["token_ids"][-1]) == "<|im_end|>"
