"""Prompts of a conversation in token ids: the first rendered whole, each later one extended.

A later prompt is the previous prompt, the sampled tokens as they are, and the ids of what the chat
template puts between an assistant's turn and the next one. That text is found by rendering a fixed
conversation with and without the new messages. It starts with the special token that ends a turn,
and a tokenizer splits its input at special tokens before anything else, so the ids after it do
not depend on what was sampled before it. Both properties are checked each time.
"""

from collections.abc import Sequence
from pathlib import Path

from rollout_stages.tokens.model_files import ModelFiles, ModelFilesUnusable, load
from rollout_stages.tokens.template import ChatMessage, ChatTemplate, TemplateRefused, ToolSchema
from rollout_stages.tool_calls import OPEN_TAG, describe_tools

_TURN = "\u25c6assistant turn\u25c6"
_USER: ChatMessage = {"role": "user", "content": "question"}
_ASSISTANTS: tuple[ChatMessage, ...] = (
    {"role": "assistant", "content": _TURN},
    # Templates that drop or add an empty reasoning block depending on the position of the turn.
    {"role": "assistant", "content": f"<think>\nreason\n</think>\n\n{_TURN}"},
)


class TokenizerUnusable(Exception):
    """Tokenizer or chat template cannot be used for exact tokens; says why."""


class ChatTokenizer:
    """Tokenizer and chat template of one model.

    Args:
        files: The model's files.

    Raises:
        TokenizerUnusable: The template does not end turns with a special token, or rewrites
            earlier turns.
    """

    def __init__(self, files: ModelFiles) -> None:
        self._tokenizer = files.tokenizer
        self.vocabulary_size = files.vocabulary_size
        try:
            self._template = ChatTemplate(files.chat_template, files.special_tokens)
            self._native_tools = self._renders_tools()
            self._has_tool_role = self._native_tools and self._renders_tool_role()
            closing = self._closing_text()
        except TemplateRefused as error:
            raise TokenizerUnusable(str(error)) from error
        self.turn_end_text, self.turn_end_id = self._turn_end(closing)
        added = files.tokenizer.get_added_tokens_decoder()
        self._special_ids = frozenset(i for i, token in added.items() if token.special)

    @classmethod
    def from_directory(cls, directory: Path) -> "ChatTokenizer":
        """Load it from a model directory.

        Raises:
            TokenizerUnusable: A file is missing or cannot be used.
        """
        try:
            return cls(load(directory))
        except ModelFilesUnusable as error:
            raise TokenizerUnusable(str(error)) from error

    def first_prompt(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = ()
    ) -> tuple[int, ...]:
        """Ids of the opening messages, up to where the assistant's turn begins.

        Tools go through the template where it knows them and asks for calls in the form that we
        parse; elsewhere their description is added to the system message.
        """
        if tools and not self._native_tools:
            messages, tools = _with_tools_as_text(messages, tools), ()
        return self._encode(self._render(messages, tools, add_generation_prompt=True))

    def extend(
        self,
        prompt: Sequence[int],
        output: Sequence[int],
        results: Sequence[str],
    ) -> tuple[int, ...]:
        """Ids of the next prompt: everything so far unchanged, then the tools' results.

        Args:
            prompt: Prompt of the assistant's turn.
            output: The tokens sampled for it, with the one that ended it, if any.
            results: What the tools returned, in the order of the calls.
        """
        between = self._encode(self._between_turns(self._result_messages(results)))
        if between[:1] != (self.turn_end_id,):
            msg = f"the tokenizer does not keep {self.turn_end_text!r} apart from what follows it"
            raise TokenizerUnusable(msg)
        ended = bool(output) and output[-1] == self.turn_end_id
        return (*prompt, *output, *(between[1:] if ended else between))

    def text(self, output: Sequence[int]) -> str:
        """Text of sampled tokens, for people and for parsing; without the end of the turn."""
        ids = list(output)
        if ids and ids[-1] in self._special_ids:
            ids.pop()
        decoded: str = self._tokenizer.decode(ids, skip_special_tokens=False)
        return decoded

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _render(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[ToolSchema] = (),
        *,
        add_generation_prompt: bool,
    ) -> str:
        try:
            return self._template.render(
                messages, tools, add_generation_prompt=add_generation_prompt
            )
        except TemplateRefused as error:
            raise TokenizerUnusable(str(error)) from error

    def _closing_text(self) -> str:
        text = self._template.render([_USER, _ASSISTANTS[0]], add_generation_prompt=False)
        if _TURN not in text:
            msg = "the chat template does not show the assistant's message as it is"
            raise TokenizerUnusable(msg)
        return text.rpartition(_TURN)[2]

    def _turn_end(self, closing: str) -> tuple[str, int]:
        for token_id, token in self._tokenizer.get_added_tokens_decoder().items():
            if token.special and token.content and closing.startswith(token.content):
                return token.content, token_id
        msg = (
            "the chat template does not end an assistant's turn with a special token "
            f"(it ends with {closing[:40]!r}), so what follows cannot be tokenised alone"
        )
        raise TokenizerUnusable(msg)

    def _between_turns(self, new: Sequence[ChatMessage]) -> str:
        """Text from the end of an assistant's turn to the beginning of the next one."""
        for assistant in _ASSISTANTS:
            before = self._render([_USER, assistant], add_generation_prompt=False)
            after = self._render([_USER, assistant, *new], add_generation_prompt=True)
            if after.startswith(before):
                return after[before.rindex(_TURN) + len(_TURN) :]
        msg = "the chat template rewrites earlier turns when tool results follow them"
        raise TokenizerUnusable(msg)

    def _result_messages(self, results: Sequence[str]) -> list[ChatMessage]:
        if self._has_tool_role:
            return [{"role": "tool", "content": result} for result in results]
        wrapped = (f"<tool_response>\n{result}\n</tool_response>" for result in results)
        return [{"role": "user", "content": "\n".join(wrapped)}]

    def _renders_tool_role(self) -> bool:
        probe = "\u25c6tool result\u25c6"
        result: ChatMessage = {"role": "tool", "content": probe}
        try:
            text = self._template.render(
                [_USER, _ASSISTANTS[0], result], add_generation_prompt=True
            )
        except TemplateRefused:
            return False
        return probe in text

    def _renders_tools(self) -> bool:
        probe: ToolSchema = {
            "type": "function",
            "function": {"name": "probe_tool", "description": "", "parameters": {}},
        }
        try:
            text = self._template.render([_USER], [probe], add_generation_prompt=True)
        except TemplateRefused:
            return False
        return "probe_tool" in text and OPEN_TAG in text


def _with_tools_as_text(
    messages: Sequence[ChatMessage], tools: Sequence[ToolSchema]
) -> list[ChatMessage]:
    description = describe_tools(tools)
    if messages and messages[0]["role"] == "system":
        system = f"{messages[0]['content']}\n\n{description}"
        return [{"role": "system", "content": system}, *messages[1:]]
    return [{"role": "system", "content": description}, *messages]
