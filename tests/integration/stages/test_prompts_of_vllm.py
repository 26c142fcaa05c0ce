"""Our rendering of a conversation has the same ids as vLLM's own."""

from typing import Any

import httpx2
import pytest

from rollout_stages.tokens.conversation import ChatTokenizer
from rollout_stages.tools import schemas
from tests.support.engine import Engine

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

OPENING: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief. \u00dcber <b>'quotes'</b>"},
    {"role": "user", "content": "What is 2 + 2?\n\n\ttabs  and spaces "},
]


def ids_of_vllm(engine: Engine, messages: list[dict[str, Any]]) -> list[int]:
    body = {
        "model": engine.model,
        "messages": messages,
        "tools": schemas(["bash", "ipython"]),
        "add_generation_prompt": True,
    }
    answer = httpx2.post(f"{engine.url}/tokenize", json=body)
    assert answer.status_code == 200, answer.text
    tokens: list[int] = answer.json()["tokens"]
    return tokens


def test_first_prompt_is_the_engines(tiny_engine: Engine) -> None:
    tokenizer = ChatTokenizer.from_directory(tiny_engine.folder)
    ours = tokenizer.first_prompt(OPENING, schemas(["bash", "ipython"]))
    assert list(ours) == ids_of_vllm(tiny_engine, OPENING)


def test_later_prompt_is_the_engines_where_the_text_encodes_to_what_was_sampled(
    tiny_engine: Engine,
) -> None:
    tokenizer = ChatTokenizer.from_directory(tiny_engine.folder)
    said = "<think>\nhm\n</think>\n\n<tool_call>\n{}\n</tool_call>"
    first = tokenizer.first_prompt(OPENING, schemas(["bash", "ipython"]))
    output = (*tokenizer._encode(said), tokenizer.turn_end_id)
    ours = tokenizer.extend(first, output, ["one\n", "two"])
    conversation = [
        *OPENING,
        {"role": "assistant", "content": said},
        {"role": "tool", "content": "one\n"},
        {"role": "tool", "content": "two"},
    ]
    assert list(ours) == ids_of_vllm(tiny_engine, conversation)
