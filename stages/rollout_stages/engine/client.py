"""A client of one vLLM server that waits through pauses, restarts and aborted requests.

Nothing that an engine does for a while is a failure of a rollout: a pause (503), a restart (no
connection) and a crash in the middle of an answer (5xx, a broken connection) are waited for, up to
the deadline of the stage. A server that gives no sign of life at all is given up earlier, because
the gateway may know a better one.
"""

import asyncio
import logging
import time
import uuid
from dataclasses import dataclass
from typing import Any

import httpx2

from rollout_client.backoff import backoff
from rollout_crds.llmpool import LLMPoolSpec
from rollout_crds.locations import parse_server_url
from rollout_crds.reasons import FailureReason
from rollout_crds.result import Boundary
from rollout_stages.engine.answers import GenerationFailed, Sampled, UnusableAnswer
from rollout_stages.engine.wire import Completions, Dialect, Generate
from rollout_stages.errors import StageError
from rollout_stages.ports import Generation, Prompt

_log = logging.getLogger(__name__)
_NOT_OFFERED = {403, 404, 405}
_PAUSED = 503
_TRANSIENT = {408, 429}
_MAX_DETAIL = 500


@dataclass(frozen=True)
class Patience:
    """How long to wait for an engine, in seconds."""

    answer: float = 600.0
    """For one answer."""
    silence: float = 300.0
    """For a server that neither answers nor says that it is paused."""
    retry_first: float = 0.2
    retry_longest: float = 5.0


class _TryAgain(Exception):
    """This attempt failed for a passing reason."""

    def __init__(self, why: str, *, paused: bool = False) -> None:
        super().__init__(why)
        self.paused = paused


class VLLMEngine:
    """The server at one URL.

    Args:
        url: `unix:///path.sock` or `http(s)://host:port`.
        model: The name that it serves the model under.
        patience: How long to wait for it.
    """

    def __init__(self, url: str, model: str, patience: Patience | None = None) -> None:
        address = parse_server_url(url)
        self._url = url
        self._model = model
        self._patience = patience or Patience()
        self._dialect: Dialect = Generate()
        self._logged: str | None = None
        self._http = httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(
                uds=address.socket_path,
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64),
            ),
            base_url=address.base_url,
            timeout=httpx2.Timeout(self._patience.answer, connect=5.0, pool=None),
            trust_env=False,
        )

    async def generate(self, prompt: Prompt, deadline: float) -> Generation:
        """Sample from `prompt`; see `ports.Engine`."""
        clock = asyncio.get_running_loop().time
        sign_of_life = clock()
        waits = backoff(self._patience.retry_first, self._patience.retry_longest)
        while True:
            try:
                return await self._attempt(prompt)
            except _TryAgain as error:
                now, wait = clock(), next(waits)
                if error.paused:
                    sign_of_life = now
                if now + wait >= min(deadline, sign_of_life + self._patience.silence):
                    raise self._unavailable(error) from error
                self._log_once(str(error))
                await asyncio.sleep(wait)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _log_once(self, why: str) -> None:
        """Log why a server is asked again, unless that was the last thing it did."""
        if why != self._logged:
            _log.warning("the engine at %s is asked again: %s", self._url, why)
            self._logged = why

    async def _attempt(self, prompt: Prompt) -> Generation:
        request_id = uuid.uuid4().hex
        started_at, started = time.time(), time.perf_counter()
        sampled = await self._sample(prompt, request_id)
        return Generation(
            request_id=request_id,
            token_ids=sampled.token_ids,
            logprobs=sampled.logprobs,
            finish_reason=sampled.finish_reason,
            started_at=started_at,
            duration_seconds=time.perf_counter() - started,
            weight_versions=sampled.weight_versions,
            cached_prompt_tokens=sampled.cached_prompt_tokens,
        )

    async def _sample(self, prompt: Prompt, request_id: str) -> Sampled:
        dialect = self._dialect
        response = await self._post(dialect, prompt, request_id)
        if isinstance(dialect, Generate) and response.status_code in _NOT_OFFERED:
            dialect = Completions()
            response = await self._post(dialect, prompt, request_id)
        self._check_status(response)
        self._dialect = dialect
        try:
            sampled = dialect.read(response.json())
        except UnusableAnswer as error:
            raise self._refused(str(error)) from error
        except (GenerationFailed, ValueError) as error:
            raise _TryAgain(str(error)) from error
        self._check_against(prompt, sampled)
        self._logged = None
        return sampled

    def _check_against(self, prompt: Prompt, sampled: Sampled) -> None:
        if sampled.prompt_token_ids not in (None, prompt.token_ids):
            msg = "the server saw another prompt than the one sent"
            raise self._refused(msg)
        if len(sampled.token_ids) > prompt.sampling.max_tokens:
            msg = f"{len(sampled.token_ids)} tokens, at most {prompt.sampling.max_tokens} asked for"
            raise self._refused(msg)

    async def _post(self, dialect: Dialect, prompt: Prompt, request_id: str) -> httpx2.Response:
        body = dialect.request(prompt, self._model, request_id)
        try:
            return await self._http.post(dialect.path, json=body)
        except httpx2.RequestError as error:
            msg = f"no answer: {error or type(error).__name__}"
            raise _TryAgain(msg) from error

    def _check_status(self, response: httpx2.Response) -> None:
        status = response.status_code
        if status < 400:
            return
        why = f"HTTP {status}: {_detail(response)}"
        if status >= 500 or status in _TRANSIENT:
            raise _TryAgain(why, paused=status == _PAUSED)
        raise self._refused(why)

    def _refused(self, why: str) -> StageError:
        return StageError(
            Boundary.MODEL,
            FailureReason.MODEL_REQUEST_REFUSED,
            f"the engine at {self._url} does not do as asked: {why}",
            retryable=False,
        )

    def _unavailable(self, error: _TryAgain) -> StageError:
        return StageError(
            Boundary.MODEL,
            FailureReason.MODEL_UNAVAILABLE,
            f"the engine at {self._url} does not work: {error}",
            retryable=True,
        )


class VLLMEngines:
    """Keeps one client, with its connections and what it learnt, per server."""

    def __init__(self) -> None:
        self._engines: dict[tuple[str, str], VLLMEngine] = {}

    def at(self, url: str, pool: LLMPoolSpec) -> VLLMEngine:
        """The server at `url`."""
        key = url, pool.model
        if key not in self._engines:
            self._engines[key] = VLLMEngine(url, pool.model)
        return self._engines[key]

    async def aclose(self) -> None:
        """Close the connections to all servers."""
        for engine in self._engines.values():
            await engine.aclose()


def _detail(response: httpx2.Response) -> str:
    try:
        body: Any = response.json()
    except ValueError:
        return response.text[:_MAX_DETAIL]
    error = body.get("error", body) if isinstance(body, dict) else body
    text = error.get("message", error) if isinstance(error, dict) else error
    return str(text)[:_MAX_DETAIL]
