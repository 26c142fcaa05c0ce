"""Prompts in token ids: rendered once, then only extended."""

import json
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from rollout_stages.tokens.conversation import ChatTokenizer, TokenizerUnusable
from rollout_stages.tokens.model_files import ModelFiles
from rollout_stages.tokens.template import ChatTemplate, TemplateRefused

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CHATML_WITH_TOOLS = (
    "{% if tools %}<|im_start|>system\n{% for t in tools %}{{ t | tojson }}{% endfor %}"
    "answer with <tool_call><|im_end|>\n{% endif %}" + CHATML
)
# Puts an empty reasoning block into the last turn and drops it from the earlier ones.
REASONING = (
    "{% for m in messages %}{% set c = m.content %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' and loop.last and '<think>' not in c %}<think>\n\n</think>\n\n"
    "{% endif %}{{ c }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
    "{{ m.content }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}"
    "<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
COUNTS_TURNS = (
    "{{ messages | length }} messages\n{% for m in messages %}{{ m.content }}<|im_end|>\n"
    "{% endfor %}"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>")
TOOL = {
    "type": "function",
    "function": {"name": "bash", "description": "run", "parameters": {"type": "object"}},
}


def byte_tokenizer(*, strips_after_end: bool = False) -> Tokenizer:
    """One token per byte, and special tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {symbol: index for index, symbol in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [
            AddedToken(text, special=True, rstrip=strips_after_end and text == "<|im_end|>")
            for text in (*SPECIAL, "<|end_header_id|>")
        ]
    )
    return tokenizer


def chat(template: str, **options: bool) -> ChatTokenizer:
    return ChatTokenizer(
        ModelFiles(byte_tokenizer(**options), template, {"bos_token": "<|endoftext|>"}, 1000)
    )


def text_of(ids: tuple[int, ...]) -> str:
    decoded: str = byte_tokenizer().decode(list(ids), skip_special_tokens=False)
    return decoded


def ids_of(text: str) -> tuple[int, ...]:
    return tuple(byte_tokenizer().encode(text).ids)


OPENING = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]


@pytest.mark.parametrize("template", [CHATML_WITH_TOOLS, REASONING, LLAMA])
def test_next_prompt_keeps_every_earlier_token(template: str) -> None:
    tokenizer = chat(template)
    prompt = tokenizer.first_prompt(OPENING, [TOOL])
    output = (*ids_of("odd bytes \u00e9"), tokenizer.turn_end_id)
    following = tokenizer.extend(prompt, output, ["result"])
    assert following[: len(prompt) + len(output)] == (*prompt, *output)
    assert "result" in text_of(following[len(prompt) + len(output) :])


def test_what_the_template_puts_behind_a_turn_is_added_once() -> None:
    tokenizer = chat(CHATML_WITH_TOOLS)
    expected = "\n<|im_start|>tool\nresult<|im_end|>\n<|im_start|>assistant\n"
    ended = tokenizer.extend((), (65, tokenizer.turn_end_id), ["result"])
    assert text_of(ended[2:]) == expected
    cut_off = tokenizer.extend((), (65,), ["result"])
    assert cut_off == (65, tokenizer.turn_end_id, *ended[2:])


def test_turn_ended_by_another_stop_token_is_closed_as_the_template_does() -> None:
    tokenizer = chat(CHATML_WITH_TOOLS)
    (end_of_text,) = ids_of("<|endoftext|>")
    following = tokenizer.extend((), (65, end_of_text), ["r"])
    assert following[:3] == (65, end_of_text, tokenizer.turn_end_id)


def test_text_of_a_turn_leaves_out_only_the_token_that_ended_it() -> None:
    tokenizer = chat(CHATML)
    assert tokenizer.text((*ids_of("a<|im_start|>b"), tokenizer.turn_end_id)) == "a<|im_start|>b"


def test_template_that_knows_tools_renders_them_itself() -> None:
    prompt = text_of(chat(CHATML_WITH_TOOLS).first_prompt(OPENING, [TOOL]))
    assert json.dumps(TOOL) in prompt
    assert "<|im_start|>system\ns<|im_end|>" in prompt


def test_template_that_does_not_know_tools_gets_them_in_the_system_message() -> None:
    tokenizer = chat(CHATML)
    prompt = text_of(tokenizer.first_prompt(OPENING, [TOOL]))
    assert prompt.startswith("<|im_start|>system\ns\n\nYou may call")
    assert json.dumps(TOOL) in prompt
    following = text_of(tokenizer.extend((), (tokenizer.turn_end_id,), ["r1", "r2"]))
    assert "<|im_start|>user\n<tool_response>\nr1\n</tool_response>\n<tool_response>" in following


def test_no_tools_are_described_where_there_are_none() -> None:
    assert text_of(chat(CHATML).first_prompt(OPENING)) == (
        "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n"
    )


def test_token_that_swallows_the_space_behind_it_is_respected() -> None:
    tokenizer = chat(CHATML_WITH_TOOLS, strips_after_end=True)
    following = tokenizer.extend((), (tokenizer.turn_end_id,), ["r"])
    whole = byte_tokenizer(strips_after_end=True).encode("<|im_end|>\n<|im_start|>tool\n").ids
    assert list(following[: len(whole)]) == whole


def test_template_that_rewrites_earlier_turns_is_refused() -> None:
    tokenizer = chat(COUNTS_TURNS)
    with pytest.raises(TokenizerUnusable, match="rewrites earlier turns"):
        tokenizer.extend((), (1,), ["r"])


def test_template_without_a_token_that_ends_turns_is_refused() -> None:
    with pytest.raises(TokenizerUnusable, match="special token"):
        chat("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")


def test_template_runs_in_a_sandbox() -> None:
    template = ChatTemplate("{{ ''.__class__.__mro__ }}", {})
    with pytest.raises(TemplateRefused, match="unsafe"):
        template.render([], add_generation_prompt=True)


def test_template_may_raise() -> None:
    template = ChatTemplate("{{ raise_exception('roles must alternate') }}", {})
    with pytest.raises(TemplateRefused, match="roles must alternate"):
        template.render([], add_generation_prompt=True)


def test_missing_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(TokenizerUnusable, match=r"tokenizer\.json does not exist"):
        ChatTokenizer.from_directory(tmp_path)


def test_missing_template_is_named(tmp_path: Path) -> None:
    byte_tokenizer().save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(TokenizerUnusable, match="no chat template"):
        ChatTokenizer.from_directory(tmp_path)


@pytest.mark.parametrize("where", ["file", "config", "named"])
def test_template_is_found_wherever_models_keep_it(tmp_path: Path, where: str) -> None:
    byte_tokenizer().save(str(tmp_path / "tokenizer.json"))
    config: dict[str, object] = {"bos_token": {"content": "<|endoftext|>"}}
    if where == "file":
        (tmp_path / "chat_template.jinja").write_text(LLAMA)
    elif where == "config":
        config["chat_template"] = LLAMA
    else:
        config["chat_template"] = [{"name": "default", "template": LLAMA}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    prompt = ChatTokenizer.from_directory(tmp_path).first_prompt(OPENING)
    assert text_of(prompt).startswith("<|endoftext|><|start_header_id|>system")
