"""A model's chat template, rendered as the model's authors meant it.

Templates come with models, so they are untrusted code: they run in Jinja's immutable sandbox, with
the helpers that chat templates rely on and nothing else.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from jinja2 import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

ChatMessage = Mapping[str, Any]
ToolSchema = Mapping[str, Any]


class TemplateRefused(Exception):
    """The template is not valid, or refuses the conversation."""


class ChatTemplate:
    """A compiled chat template.

    Args:
        source: Jinja source.
        special_tokens: Variables such as `bos_token`.

    Raises:
        TemplateRefused: It cannot be compiled.
    """

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
        )
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _raise_exception
        environment.globals["strftime_now"] = _strftime_now
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            msg = f"the chat template does not compile: {error}"
            raise TemplateRefused(msg) from error
        self._special_tokens = dict(special_tokens)

    def render(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[ToolSchema] = (),
        *,
        add_generation_prompt: bool,
    ) -> str:
        """The conversation as text.

        Raises:
            TemplateRefused: The template raises an error for it.
        """
        try:
            return self._template.render(
                messages=list(messages),
                tools=list(tools) or None,
                add_generation_prompt=add_generation_prompt,
                **self._special_tokens,
            )
        except (TemplateError, TypeError, KeyError, IndexError, AttributeError) as error:
            msg = f"the chat template refuses the conversation: {error}"
            raise TemplateRefused(msg) from error


def _tojson(value: object, indent: int | None = None) -> str:
    """JSON as it is, where Jinja's own filter would escape it for HTML."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise_exception(message: str) -> None:
    raise TemplateError(message)


def _strftime_now(pattern: str) -> str:
    return datetime.now().astimezone().strftime(pattern)
