"""Reads tokenizer and chat template from a model directory, in the layout of Hugging Face."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

_SPECIAL_TOKENS = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token")


class ModelFilesUnusable(Exception):
    """A file is missing or unreadable; names it."""


@dataclass(frozen=True)
class ModelFiles:
    """What is needed of a model to speak to it in tokens."""

    tokenizer: Tokenizer
    chat_template: str
    special_tokens: Mapping[str, str]
    vocabulary_size: int
    """Token ids are below this, those that only pad the model's embedding included."""


def load(directory: Path) -> ModelFiles:
    """Read the files of a model directory.

    Raises:
        ModelFilesUnusable: One is missing or unreadable.
    """
    config = _json(directory / "tokenizer_config.json")
    tokenizer = _tokenizer(directory)
    return ModelFiles(
        tokenizer,
        _template(directory, config),
        _special_tokens(config),
        _vocabulary_size(tokenizer, _json(directory / "config.json")),
    )


def _tokenizer(directory: Path) -> Tokenizer:
    path = directory / "tokenizer.json"
    if not path.is_file():
        msg = f"no tokenizer: {path} does not exist"
        raise ModelFilesUnusable(msg)
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the binding raises plain Exception
        msg = f"{path} is not a tokenizer: {error}"
        raise ModelFilesUnusable(msg) from error


def _vocabulary_size(tokenizer: Tokenizer, model: Mapping[str, Any]) -> int:
    own = max(tokenizer.get_vocab().values(), default=-1) + 1
    text = model.get("text_config")
    stated = {**model, **(text if isinstance(text, dict) else {})}.get("vocab_size")
    return max(own, stated) if isinstance(stated, int) else own


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        msg = f"{path} is not JSON: {error}"
        raise ModelFilesUnusable(msg) from error
    return content if isinstance(content, dict) else {}


def _template(directory: Path, config: Mapping[str, Any]) -> str:
    file = directory / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    template = config.get("chat_template")
    if isinstance(template, list):
        template = _named_template(template)
    if isinstance(template, str):
        return template
    msg = (
        f"no chat template: {directory} has neither chat_template.jinja nor a `chat_template` in "
        "tokenizer_config.json; a base model cannot be driven as a chat"
    )
    raise ModelFilesUnusable(msg)


def _named_template(templates: list[Any]) -> str | None:
    by_name = {t.get("name"): t.get("template") for t in templates if isinstance(t, dict)}
    return by_name.get("tool_use") or by_name.get("default")


def _special_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for name in _SPECIAL_TOKENS:
        value = config.get(name)
        text = value.get("content") if isinstance(value, dict) else value
        if isinstance(text, str):
            found[name] = text
    return found
