"""vLLM's two ways to sample from token ids, as pure functions between its JSON and our types.

`/inference/v1/generate` is the better one: ids in and out, and the version of the weights per
token. Servers without it, or with it switched off, have `/v1/completions` with `return_token_ids`.
"""

from typing import Any, Protocol

from rollout_stages.engine.answers import Sampled, read_completion, read_generation
from rollout_stages.ports import Prompt


class Dialect(Protocol):
    """One way to ask."""

    @property
    def path(self) -> str:
        """Of the HTTP request."""
        ...

    def request(self, prompt: Prompt, model: str, request_id: str) -> dict[str, Any]:
        """The body to send."""
        ...

    def read(self, answer: object) -> Sampled:
        """Read the JSON of a 200 answer.

        Raises:
            UnusableAnswer: Something in it is missing or wrong.
            GenerationFailed: It tells of an error of the server.
        """
        ...


class Generate:
    """`/inference/v1/generate`."""

    path = "/inference/v1/generate"

    def request(self, prompt: Prompt, model: str, request_id: str) -> dict[str, Any]:
        """The body to send."""
        return {
            "model": model,
            "request_id": request_id,
            "token_ids": list(prompt.token_ids),
            "sampling_params": {**_sampling(prompt), "logprobs": 0},
            "return_token_ids": True,
            "stream": False,
        }

    def read(self, answer: object) -> Sampled:
        """Read the JSON of a 200 answer."""
        return read_generation(answer)


class Completions:
    """`/v1/completions` with `return_token_ids`."""

    path = "/v1/completions"

    def request(self, prompt: Prompt, model: str, request_id: str) -> dict[str, Any]:
        """The body to send."""
        return {
            "model": model,
            "request_id": request_id,
            "prompt": list(prompt.token_ids),
            **_sampling(prompt),
            "logprobs": 0,
            "return_token_ids": True,
            "stream": False,
        }

    def read(self, answer: object) -> Sampled:
        """Read the JSON of a 200 answer."""
        return read_completion(answer)


def _sampling(prompt: Prompt) -> dict[str, Any]:
    sampling = prompt.sampling
    parameters: dict[str, Any] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "max_tokens": sampling.max_tokens,
        "stop": list(sampling.stop),
        "stop_token_ids": list(prompt.stop_token_ids),
    }
    if sampling.seed is not None:
        parameters["seed"] = sampling.seed
    if prompt.forced_text is not None:
        parameters["structured_outputs"] = {"choice": [prompt.forced_text]}
    return parameters
