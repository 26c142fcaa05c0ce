"""Checks before a run: what the manifest names must be there, so that nothing fails late."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollout_client.cli.rest import Gateway
from rollout_client.cli.sources import Source
from rollout_client.errors import GatewayError, Unavailable
from rollout_crds.llmpool import Endpoint, LLMPool, LLMPoolSpec
from rollout_crds.locations import IMAGE_ARCHIVES, image_paths
from rollout_crds.rolloutjob import RolloutJob

_PROBE_SECONDS = 5.0
_MODELS = "/v1/models"
_ARCHIVES = tuple(f"{scheme}:" for scheme in IMAGE_ARCHIVES)
_SIF_MAGIC = b"SIF_MAGIC"
_SIF_HEADER = 32 + len(_SIF_MAGIC)
"""Bytes of a SIF up to the end of its magic, which comes behind an interpreter line."""


@dataclass(frozen=True)
class Machine:
    """Where this machine keeps what manifests name without a path."""

    images: Path
    models: Path
    programs: Path


def preflight(
    sources: Sequence[Source],
    machine: Machine,
    served_models: Callable[[str], list[str]] | None = None,
) -> list[str]:
    """Look for everything that the resources name on this machine.

    Args:
        sources: The resources.
        machine: Where to look for plain names.
        served_models: The models that an endpoint serves; raises `GatewayError` when it does not
            answer. Unset: ask it.

    Returns:
        One line for each thing that is missing, with file, field and remedy.
    """
    ask = served_models or models_at
    lines: list[str] = []
    for source in sources:
        if isinstance(source.resource, RolloutJob):
            found = _job_problems(source.resource, machine)
        elif isinstance(source.resource, LLMPool):
            found = _llm_problems(source.resource.spec, machine, ask)
        else:
            continue
        lines += [f"{source.label}: {problem}" for problem in found]
    return lines


def models_at(url: str) -> list[str]:
    """The models that the inference server at `url` serves.

    Raises:
        GatewayError: It does not answer, or not as an inference server does.
    """
    answer: dict[str, Any] = Gateway(url, timeout_seconds=_PROBE_SECONDS).get(_MODELS)
    try:
        return [str(model["id"]) for model in answer["data"]]
    except (KeyError, TypeError) as error:
        msg = f"{_MODELS} does not answer in the form of OpenAI's API"
        raise GatewayError(msg, request=f"GET {_MODELS}") from error


def _job_problems(job: RolloutJob, machine: Machine) -> Iterator[str]:
    if problem := _image_problem(job.spec.sandbox.image, machine):
        yield f"spec.sandbox.image: {problem}"
    for index, task in enumerate(job.spec.tasks.inline or ()):
        image = task.environment.image
        if image is not None and (problem := _image_problem(image, machine)):
            yield f"spec.tasks.inline[{index}].environment.image: {problem}"


def _image_problem(image: str, machine: Machine) -> str | None:
    paths = image_paths(image, machine.images)
    if found := next((path for path in paths if path.exists()), None):
        return None if image.startswith(_ARCHIVES) else _sif_problem(found)
    if len(paths) == 1:
        return f"{paths[0]} does not exist; build or copy it there"
    return f"no image {image!r} in {machine.images} (there are: {_names(machine.images)})"


def _sif_problem(path: Path) -> str | None:
    if path.is_file():
        with path.open("rb") as file:
            if file.read(_SIF_HEADER)[-len(_SIF_MAGIC) :] != _SIF_MAGIC:
                return f"{path} is not a SIF file; build it with `apptainer build`"
    return None


def _names(folder: Path) -> str:
    names = {path.name.removesuffix(".sif") for path in folder.glob("*")}
    return ", ".join(sorted(names)) or "none"


def _llm_problems(
    spec: LLMPoolSpec, machine: Machine, ask: Callable[[str], list[str]]
) -> Iterator[str]:
    tokenizer = _in_models(spec.tokenizer_path, machine)
    field = "spec.tokenizer" if spec.tokenizer else "spec.launch.modelPath"
    if not tokenizer.is_dir():
        have = _names(machine.models)
        yield f"{field}: {tokenizer} is not a directory; {machine.models} has: {have}"
    elif not (tokenizer / "tokenizer.json").exists():
        yield f"{field}: {tokenizer} has no tokenizer.json; name a directory that has one"
    for index, endpoint in enumerate(spec.endpoints or ()):
        yield from _endpoint_problems(spec.model, index, endpoint, ask)
    if spec.launch is not None:
        yield from _launch_problems(_in_models(spec.launch.model_path, machine), machine)


def _in_models(path: str, machine: Machine) -> Path:
    return machine.models / path


def _endpoint_problems(
    model: str, index: int, endpoint: Endpoint, ask: Callable[[str], list[str]]
) -> Iterator[str]:
    try:
        served = ask(endpoint.url)
    except GatewayError as error:
        cause = error.__cause__ if isinstance(error, Unavailable) else None
        yield (
            f"spec.endpoints[{index}].url: no inference server answers at {endpoint.url}: "
            f"{cause or error.detail}; start it, or correct the URL"
        )
        return
    if model not in served:
        have = ", ".join(served) or "no model"
        yield f"spec.model: {endpoint.url} does not serve {model!r}; it serves: {have}"


def _launch_problems(model: Path, machine: Machine) -> Iterator[str]:
    if model.is_dir() and not (model / "config.json").exists():
        yield f"spec.launch.modelPath: {model} has no config.json; name a model directory"
    if not (machine.programs / "vllm-python").exists():
        yield (
            f"spec.launch: vLLM is not installed ({machine.programs / 'vllm-python'} is missing); "
            "`rolloutctl doctor` says how to get it"
        )
