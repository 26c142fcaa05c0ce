"""Looks at inference servers over HTTP, on TCP or on a Unix socket."""

import os

import httpx2
from pydantic import BaseModel, NonNegativeInt, ValidationError

from rollout_crds.locations import parse_server_url
from rollout_operator.observed import ProbeResult

_TIMEOUT_SECONDS = 5.0


class _Model(BaseModel):
    id: str
    max_model_len: NonNegativeInt | None = None


class _Models(BaseModel):
    data: list[_Model]


class HttpEngineProbe:
    """Asks `/health` whether a server is alive and `/v1/models` what it serves."""

    async def probe(self, url: str) -> ProbeResult:
        """Ask a server whether it is alive and what it serves; never raises."""
        try:
            address = parse_server_url(url)
            async with httpx2.AsyncClient(
                transport=httpx2.AsyncHTTPTransport(uds=address.socket_path),
                base_url=address.base_url,
                timeout=_TIMEOUT_SECONDS,
                trust_env=False,
            ) as http:
                health = await http.get("/health")
                if not health.is_success:
                    return ProbeResult(url, error=f"/health answers {health.status_code}")
                return _models(url, await http.get("/v1/models"))
        except httpx2.TimeoutException:
            return ProbeResult(url, error=f"no answer in {_TIMEOUT_SECONDS:g} s", timed_out=True)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            return ProbeResult(url, error=_cause(error))


def _cause(error: BaseException) -> str:
    """The system's own words where there are some, such as `Connection refused`."""
    deepest: BaseException | None = error
    while deepest is not None:
        if isinstance(deepest, OSError) and deepest.errno is not None and deepest.errno > 0:
            return os.strerror(deepest.errno)
        deepest = deepest.__cause__ or deepest.__context__
    return str(error) or type(error).__name__


def _models(url: str, response: httpx2.Response) -> ProbeResult:
    if not response.is_success:
        return ProbeResult(url, error=f"/v1/models answers {response.status_code}")
    try:
        served = _Models.model_validate_json(response.content).data
    except ValidationError:
        return ProbeResult(url, error="/v1/models does not answer in the form of OpenAI's API")
    return ProbeResult(url, models=tuple((model.id, model.max_model_len) for model in served))
