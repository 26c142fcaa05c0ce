"""Manifests as the command line reads them: all files valid, or nothing; paths made absolute.

A path in a manifest is relative to the manifest's folder, so that a job means the same wherever
the command is started.
"""

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from rollout_client.cli.failure import INVALID, CliError
from rollout_crds.llmpool import LLMPool, LLMPoolSpec
from rollout_crds.locations import IMAGE_ARCHIVES
from rollout_crds.manifest import ManifestError, load_manifests
from rollout_crds.resources import Resource
from rollout_crds.rolloutjob import RolloutJob, RolloutJobSpec
from rollout_crds.taskfile import TaskLineError, read_tasks

_ARCHIVE = re.compile(f"({'|'.join(IMAGE_ARCHIVES)}):(.+)")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://")
_MAX_WARNINGS = 20
_APPLY_ORDER = ("LLMPool", "RolloutPool", "RolloutJob")


@dataclass(frozen=True)
class Source:
    """A resource and the file that it comes from."""

    resource: Resource
    file: str

    @property
    def label(self) -> str:
        """How errors name it: `FILE: KIND/NAME`."""
        return f"{self.file}: {self.resource.kind}/{self.resource.metadata.name}"


def load_sources(files: Sequence[str]) -> list[Source]:
    """Read all manifests, with absolute paths, pools before the jobs that use them.

    Raises:
        CliError: Something is wrong in one of them; every error has a line.
    """
    sources: list[Source] = []
    problems: list[str] = []
    for file in files:
        try:
            sources += _load(file)
        except ManifestError as error:
            problems += map(str, error.problems)
    problems += _defined_twice(sources)
    if problems:
        raise CliError(problems, INVALID)
    return sorted(sources, key=lambda source: _APPLY_ORDER.index(source.resource.kind))


def _load(file: str) -> list[Source]:
    if file == "-":
        resources, folder = load_manifests(sys.stdin.read(), "stdin"), Path.cwd()
    else:
        resources, folder = load_manifests(Path(file)), Path(file).absolute().parent
    name = "stdin" if file == "-" else file
    return [Source(with_absolute_paths(resource, folder), name) for resource in resources]


def _defined_twice(sources: Iterable[Source]) -> list[str]:
    first: dict[tuple[str, str, str], Source] = {}
    problems: list[str] = []
    for source in sources:
        metadata = source.resource.metadata
        key = (source.resource.kind, metadata.namespace, metadata.name)
        if key in first and first[key].file != source.file:
            problems.append(f"{source.label}: must be defined once; also in {first[key].file}")
        first.setdefault(key, source)
    return problems


def with_absolute_paths(resource: Resource, folder: Path) -> Resource:
    """The resource with each path that is relative to `folder` made absolute."""
    if isinstance(resource, RolloutJob):
        return resource.model_copy(update={"spec": _job_spec(resource.spec, folder)})
    if isinstance(resource, LLMPool):
        return resource.model_copy(update={"spec": _llm_spec(resource.spec, folder)})
    return resource


def _job_spec(spec: RolloutJobSpec, folder: Path) -> RolloutJobSpec:
    tasks = spec.tasks
    if tasks.uri is not None:
        tasks = tasks.model_copy(update={"uri": absolute_uri(tasks.uri, folder)})
    image = absolute_image(spec.sandbox.image, folder)
    sandbox = spec.sandbox.model_copy(update={"image": image})
    return spec.model_copy(update={"tasks": tasks, "sandbox": sandbox})


def _llm_spec(spec: LLMPoolSpec, folder: Path) -> LLMPoolSpec:
    update: dict[str, object] = {}
    if spec.tokenizer is not None:
        update["tokenizer"] = absolute_path(spec.tokenizer, folder)
    if spec.launch is not None:
        path = absolute_path(spec.launch.model_path, folder)
        update["launch"] = spec.launch.model_copy(update={"model_path": path})
    return spec.model_copy(update=update)


def absolute_path(text: str, folder: Path) -> str:
    """A path with a `/` in it, from `folder`; a plain name stays, it is looked up on the node."""
    if "/" not in text:
        return text
    return str((folder / Path(text).expanduser()).resolve())


def absolute_uri(text: str, folder: Path) -> str:
    """A path, from `folder`, as a `file://` URL; a URL stays."""
    if _URL.match(text):
        return text
    return f"file://{(folder / Path(text).expanduser()).resolve()}"


def absolute_image(text: str, folder: Path) -> str:
    """An image reference with its path made absolute; a plain name stays.

    `name.sif` counts as a path where such a file lies beside the manifest.
    """
    if archive := _ARCHIVE.fullmatch(text):
        return f"{archive[1]}:{(folder / archive[2]).resolve()}"
    if "/" not in text and text.endswith(".sif") and (folder / text).exists():
        return str((folder / text).resolve())
    return absolute_path(text, folder)


def check_task_files(sources: Iterable[Source]) -> list[str]:
    """Read the task files that lie on this machine.

    Returns:
        One warning for each broken line; the other tasks go on.

    Raises:
        CliError: A file cannot be read, or has no valid task.
    """
    warnings: list[str] = []
    for source in sources:
        if isinstance(source.resource, RolloutJob):
            warnings += _check_tasks(source, source.resource.spec.tasks.uri)
    return warnings


def _check_tasks(source: Source, uri: str | None) -> list[str]:
    parts = urlsplit(uri or "")
    if uri is None or parts.scheme != "file":
        return []
    path = Path(uri.removeprefix("file://"))
    try:
        with path.open("rb") as lines:
            results = [r if isinstance(r, TaskLineError) else None for r in read_tasks(lines)]
    except OSError as error:
        msg = (
            f"{source.label}: spec.tasks.uri: {path} cannot be read: {error.strerror}; "
            "check the path (it is relative to the manifest's folder)"
        )
        raise CliError(msg, INVALID) from error
    broken = [result for result in results if result is not None]
    warnings = task_warnings(_shown(path), broken)
    if len(broken) == len(results):
        text = f"{source.label}: spec.tasks.uri: {path} has no valid task; write one task a line"
        raise CliError([*warnings, text], INVALID)
    return warnings


def task_warnings(file: str, broken: Sequence[TaskLineError]) -> list[str]:
    """`FILE:LINE: FIELD: message` for the first broken lines, and how many more there are."""
    lines = [
        ": ".join(filter(None, (f"{file}:{error.line}", error.field, error.message)))
        for error in broken[:_MAX_WARNINGS]
    ]
    more = len(broken) - len(lines)
    return [*lines, f"{file}: {more} more broken lines"] if more else lines


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
