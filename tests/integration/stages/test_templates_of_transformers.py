"""Chat templates render here as they do in transformers, which models are published for."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rollout_stages.tokens.conversation import ChatTokenizer
from rollout_stages.tools import schemas
from tests.support.engine import cached

pytestmark = pytest.mark.timeout(180)

LLAMA = """\
{{- bos_token }}
{%- if not date_string is defined %}{% set date_string = strftime_now("%Y") %}{% endif %}
{%- if messages[0].role == 'tool' %}{{ raise_exception('starts with a tool') }}{% endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message['role'] + '\\n\\n' }}
    {%- if loop.first %}{{- 'Year: ' + date_string + '\\n' }}{% endif %}
    {%- if tools is not none and loop.first %}
        {{- 'Call as <tool_call>. ' }}
        {%- for t in tools %}{{ t | tojson(indent=4) }}{{ "\\n" }}{% endfor %}
    {%- endif %}
    {%- if message.content is string %}{{- message['content'] | trim }}{% endif %}
    {{- '<|im_end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n\\n' }}{% endif %}
"""
REFERENCE = """
import json, sys
from transformers import AutoTokenizer
asked = json.load(sys.stdin)
answers = []
for folder, messages, tools in asked:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = tokenizer.apply_chat_template(
        messages, tools=tools, tokenize=False, add_generation_prompt=True
    )
    answers.append(tokenizer.encode(text, add_special_tokens=False))
json.dump(answers, sys.stdout)
"""
OPENING: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief: \u00e9 <b>'q'</b> & \"r\""},
    {"role": "user", "content": "  What is 2 + 2?\n\n\ttabs  "},
]
TOOLS = schemas(["bash", "ipython"])


def ids_of_transformers(asked: list[Any]) -> list[list[int]]:
    python = cached("bin", "vllm-python")
    done = subprocess.run(
        [str(python), "-c", REFERENCE],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers: list[list[int]] = json.loads(done.stdout.splitlines()[-1])
    return answers


def llama(directory: Path) -> Path:
    """The tiny model with the features of a Llama 3 template."""
    shutil.copytree(cached("models", "tiny-llama"), directory)
    (directory / "chat_template.jinja").write_text(LLAMA)
    config = json.loads((directory / "tokenizer_config.json").read_text())
    config["bos_token"] = "<|endoftext|>"
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
    return directory


def test_prompts_have_the_same_ids(tmp_path: Path) -> None:
    smol, qwen = cached("models", "SmolLM2-135M-Instruct"), cached("models", "tiny-qwen3")
    tiny_llama = llama(tmp_path / "llama")
    asked = [
        (str(smol), OPENING, None),
        (str(smol), OPENING[1:], None),
        (str(qwen), OPENING, TOOLS),
        (str(qwen), OPENING, None),
        (str(tiny_llama), OPENING, TOOLS),
        (str(tiny_llama), OPENING, None),
    ]
    ours = [
        list(ChatTokenizer.from_directory(Path(folder)).first_prompt(messages, tools or ()))
        for folder, messages, tools in asked
    ]
    conversation, later = two_turns(ChatTokenizer.from_directory(tiny_llama))
    expected = ids_of_transformers([*asked, (str(tiny_llama), conversation, TOOLS)])
    assert [*ours, later] == expected


def two_turns(tokenizer: ChatTokenizer) -> tuple[list[dict[str, Any]], list[int]]:
    """A conversation, and our prompt for it when the model sampled what its text encodes to."""
    said, results = "<tool_call>\n{}\n</tool_call>", ["one", "two"]
    conversation = [
        *OPENING,
        {"role": "assistant", "content": said},
        *({"role": "tool", "content": result} for result in results),
    ]
    output = (*tokenizer._encode(said), tokenizer.turn_end_id)
    prompt = tokenizer.extend(tokenizer.first_prompt(OPENING, TOOLS), output, results)
    return conversation, list(prompt)
