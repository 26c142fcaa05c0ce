"""An instant stand-in for vLLM's token-in, token-out HTTP, for tests and benchmarks.

It answers `GET /health`, `GET /v1/models` and `POST /inference/v1/generate` in the shapes of
vLLM 0.32. Output ids and log-probs depend only on the prompt and the seed. With a script, the text
of turn N is played back instead, where N is the number of assistant turns that the prompt has
opened: the server keeps no state, so a retried call gets the same answer.

    python -m hack.stub_llm --port 8101 --tokenizer ~/.cache/rollout-operator/models/tiny-qwen3
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import socket
import time
import zlib
from array import array
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from tokenizers import Tokenizer

Message = MutableMapping[str, Any]
Json = dict[str, Any]
TURN_OPENING, TURN_END = "<|im_start|>assistant", "<|im_end|>"


@dataclass(frozen=True)
class Refused(Exception):
    """A request that vLLM would refuse."""

    status: int
    message: str


@dataclass(frozen=True)
class Vocabulary:
    """The ids that the stub may emit, and how it ends and recognises an assistant's turn."""

    size: int
    plain_ids: Sequence[int]
    end_id: int
    opening_ids: tuple[int, ...] = ()

    @classmethod
    def of_size(cls, size: int) -> Vocabulary:
        """Return a vocabulary without text, whose last id ends a turn."""
        return cls(size, range(size - 1), size - 1)

    @classmethod
    def of_tokenizer(cls, tokenizer: Tokenizer) -> Vocabulary:
        """Return a ChatML model's vocabulary; its added tokens are not emitted at random."""
        size = tokenizer.get_vocab_size()
        added = tokenizer.get_added_tokens_decoder()
        plain = [token for token in range(size) if token not in added]
        end = tokenizer.token_to_id(TURN_END)
        if end is None:
            message = f"the tokenizer has no {TURN_END}: the stub plays ChatML models only"
            raise SystemExit(message)
        opening = tokenizer.encode(TURN_OPENING, add_special_tokens=False).ids
        return cls(size, plain, end, tuple(opening))

    def turn(self, prompt: Sequence[int]) -> int:
        """Return how many assistant turns the prompt has opened."""
        wanted, width = self.opening_ids, len(self.opening_ids)
        starts = (i for i, token in enumerate(prompt) if width and token == wanted[0])
        return sum(tuple(prompt[i : i + width]) == wanted for i in starts)


@dataclass(frozen=True)
class Stub:
    """What the stub serves; `script` maps a turn's number, from 1, to the ids of its text."""

    vocabulary: Vocabulary
    model: str = "m"
    max_model_len: int = 32_768
    output_tokens: int = 32
    script: Mapping[int, Sequence[int]] = field(default_factory=dict)

    def generate(self, request: Json, now: float) -> Json:
        """Answer one `/inference/v1/generate` request.

        Raises:
            Refused: vLLM would refuse the request.
        """
        prompt, sampling = self._checked(request)
        room = self.max_model_len - len(prompt)
        limit = min(room, sampling.get("max_tokens") or room)
        rng = random.Random(zlib.crc32(array("i", prompt).tobytes(), sampling.get("seed") or 0))
        wanted = self._wanted(prompt, rng)
        output = wanted[:limit]
        stopped = len(output) == len(wanted)
        choice = {
            "index": 0,
            "finish_reason": "stop" if stopped else "length",
            "stop_reason": None,
            "token_ids": output,
            "routed_experts": None,
            "sampling_mask": None,
            "weight_versions": [{"version": "default", "start": 0, "end": len(output)}],
            "logprobs": None if sampling.get("logprobs") is None else _logprobs(output, rng),
        }
        return {
            "request_id": f"generate-tokens-{request.get('request_id') or rng.getrandbits(64)}",
            "model": self.model,
            "created": int(now),
            "usage": _usage(len(prompt), len(output)),
            "prompt_logprobs": None,
            "prompt_token_id_logprobs": None,
            "prompt_token_ids": prompt if request.get("return_token_ids") else None,
            "mm_placeholders": None,
            "metrics": None,
            "kv_transfer_params": None,
            "ec_transfer_params": None,
            "output_mode": "tokens",
            "choices": [choice],
        }

    def models(self) -> Json:
        """Answer `/v1/models`."""
        card = {"id": self.model, "object": "model", "max_model_len": self.max_model_len}
        return {"object": "list", "data": [card]}

    def _wanted(self, prompt: Sequence[int], rng: random.Random) -> list[int]:
        scripted = self.script.get(self.vocabulary.turn(prompt)) if self.script else None
        if scripted is None:
            scripted = rng.choices(self.vocabulary.plain_ids, k=self.output_tokens - 1)
        return [*scripted, self.vocabulary.end_id]

    def _checked(self, request: Json) -> tuple[list[int], Json]:
        prompt, sampling = request.get("token_ids"), request.get("sampling_params")
        if not isinstance(prompt, list) or not prompt or not isinstance(sampling, dict):
            raise Refused(400, "`token_ids` must be a filled list, `sampling_params` an object")
        if request.get("stream"):
            raise Refused(400, "this stub does not stream")
        if request.get("model") not in {None, self.model}:
            raise Refused(404, f"The model `{request['model']}` does not exist.")
        if not all(isinstance(token, int) for token in prompt):
            raise Refused(400, "`token_ids` must hold integers")
        if (largest := max(prompt)) >= self.vocabulary.size or min(prompt) < 0:
            raise Refused(400, f"Token id {largest} is out of vocabulary")
        if len(prompt) >= self.max_model_len:
            raise Refused(
                400,
                f"This model's maximum context length is {self.max_model_len} tokens, "
                f"the prompt has {len(prompt)}",
            )
        return prompt, sampling


def _logprobs(tokens: Sequence[int], rng: random.Random) -> Json:
    entries = (
        {"token_id": token, "logprob": round(-rng.expovariate(0.5), 6), "rank": 1}
        for token in tokens
    )
    return {"content": [{**entry, "top_logprobs": [entry]} for entry in entries]}


def _usage(prompt: int, completion: int) -> Json:
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
        "prompt_tokens_details": {
            "cached_tokens": 0,
            "created_cache_tokens": None,
            "multimodal_tokens": None,
        },
        "completion_tokens_details": None,
    }


class App:
    """The ASGI application around a stub."""

    def __init__(self, stub: Stub, latency_s: float) -> None:
        self._stub = stub
        self._latency_s = latency_s

    async def __call__(
        self,
        scope: Mapping[str, Any],
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Answer one HTTP request."""
        try:
            status, reply = 200, await self._answer(scope["method"], scope["path"], receive)
        except Refused as refused:
            error = {"message": refused.message, "type": "BadRequestError", "param": None}
            status, reply = refused.status, {"error": {**error, "code": refused.status}}
        body = b"" if reply is None else json.dumps(reply, separators=(",", ":")).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(
        self, method: str, path: str, receive: Callable[[], Awaitable[Message]]
    ) -> Json | None:
        match method, path:
            case "GET", "/health":
                return None
            case "GET", "/v1/models":
                return self._stub.models()
            case "POST", "/inference/v1/generate":
                reply = self._stub.generate(await _read_json(receive), time.time())
                await asyncio.sleep(self._latency_s)
                return reply
        raise Refused(404, f"no {method} {path} in this stub")


async def _read_json(receive: Callable[[], Awaitable[Message]]) -> Json:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    try:
        request = json.loads(body)
    except ValueError as error:
        raise Refused(400, f"not JSON: {error}") from error
    if not isinstance(request, dict):
        raise Refused(400, "the body must be an object")
    return request


def make_stub(options: argparse.Namespace) -> Stub:
    """Build the stub that the command line describes."""
    vocabulary, script = Vocabulary.of_size(options.vocabulary), {}
    if options.tokenizer:
        tokenizer = Tokenizer.from_file(str(options.tokenizer / "tokenizer.json"))
        vocabulary = Vocabulary.of_tokenizer(tokenizer)
        if options.script:
            turns = json.loads(options.script.read_text(encoding="utf-8"))
            script = {
                int(turn): tokenizer.encode(text, add_special_tokens=False).ids
                for turn, text in turns.items()
            }
    return Stub(vocabulary, options.model, options.max_model_len, options.output_tokens, script)


def listen(options: argparse.Namespace) -> tuple[socket.socket, str]:
    """Bind the address asked for; return the socket and the address in words."""
    if options.uds:
        options.uds.unlink(missing_ok=True)
        unix = socket.socket(socket.AF_UNIX)
        unix.bind(str(options.uds))
        return unix, f"unix:{options.uds}"
    tcp = socket.create_server((options.host, options.port), backlog=2048)
    return tcp, f"http://{options.host}:{tcp.getsockname()[1]}"


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free one, printed at start")
    parser.add_argument("--uds", type=Path, help="listen on this Unix socket instead")
    parser.add_argument("--model", default="m", help="the served model's name")
    parser.add_argument("--max-model-len", type=int, default=32_768)
    parser.add_argument("--latency-ms", type=float, default=0.0, help="added to every answer")
    parser.add_argument(
        "--output-tokens", type=int, default=32, help="per answer, its end included"
    )
    parser.add_argument(
        "--vocabulary", type=int, default=4096, help="its size, without a tokenizer"
    )
    parser.add_argument("--tokenizer", type=Path, help="a model folder with tokenizer.json")
    parser.add_argument("--script", type=Path, help='JSON: {"1": "text of the first turn", ...}')
    options = parser.parse_args(argv)
    if options.script and not options.tokenizer:
        parser.error("--script needs --tokenizer to turn its texts into ids")
    return options


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT; prints one line with the address once it listens."""
    options = parse(argv)
    app = App(make_stub(options), options.latency_ms / 1000)
    listener, address = listen(options)
    listener.listen(2048)
    print(f"listening on {address}", flush=True)
    config = uvicorn.Config(app, lifespan="off", log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
