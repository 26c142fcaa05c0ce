"""What is missing is told before anything starts."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from rollout_client.cli.preflight import Machine, preflight
from rollout_client.cli.sources import Source
from rollout_client.errors import Unavailable
from rollout_crds.llmpool import LLMPool
from rollout_crds.rolloutjob import RolloutJob


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for folder in ("images", "models/m", "bin"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "images" / "python.sif").write_bytes(
        b"#!launcher\n".ljust(32, b"\0") + b"SIF_MAGIC\0"
    )
    (tmp_path / "models" / "m" / "tokenizer.json").touch()
    return Machine(tmp_path / "images", tmp_path / "models", tmp_path / "bin")


def job(image: str) -> Source:
    spec = {
        "tasks": {"uri": "file:///t"},
        "handler": "math",
        "llm": {"poolRef": {"name": "m"}},
        "sandbox": {"image": image},
    }
    resource = RolloutJob.model_validate({"metadata": {"name": "demo"}, "spec": spec})
    return Source(resource, "job.yaml")


def pool(**spec: Any) -> Source:
    resource = LLMPool.model_validate({"metadata": {"name": "m"}, "spec": {"model": "m", **spec}})
    return Source(resource, "job.yaml")


def serves(*models: str) -> Any:
    return lambda _url: list(models)


def no_answer(url: str) -> list[str]:
    raise Unavailable(f"no answer from {url}", request="GET /v1/models")


ENDPOINT = [{"url": "http://h:1"}]


def test_nothing_missing_gives_no_lines(machine: Machine) -> None:
    sources = [job("python"), pool(endpoints=ENDPOINT, tokenizer="m")]
    assert preflight(sources, machine, serves("m")) == []


def test_a_missing_image_by_name_lists_those_there_are(machine: Machine) -> None:
    (line,) = preflight([job("pyton")], machine)
    assert line == (
        f"job.yaml: RolloutJob/demo: spec.sandbox.image: no image 'pyton' in {machine.images} "
        "(there are: python)"
    )


@pytest.mark.parametrize("image", ["/no/such.sif", "docker-archive:/no/such.tar"])
def test_a_missing_image_by_path_is_named(machine: Machine, image: str) -> None:
    (line,) = preflight([job(image)], machine)
    assert "spec.sandbox.image: /no/such" in line
    assert "does not exist" in line


def test_a_file_that_is_no_sif_is_named(machine: Machine, tmp_path: Path) -> None:
    text = tmp_path / "notes.sif"
    text.write_text("hello")
    (line,) = preflight([job(str(text))], machine)
    assert f"spec.sandbox.image: {text} is not a SIF file" in line
    assert preflight([job(f"docker-archive:{text}")], machine) == []


class _Answers(BaseHTTPRequestHandler):
    body = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *args: Any, **kwargs: Any) -> None:
        """Stay silent."""


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", b"null", b'{"data": 5}', b'{"data": ["m"]}', b'{"data": [{}]}']
)
def test_a_server_that_is_none_for_inference_is_named(machine: Machine, body: bytes) -> None:
    handler = type("Answers", (_Answers,), {"body": body})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever).start()
        endpoints = [{"url": f"http://127.0.0.1:{server.server_port}"}]
        (line,) = preflight([pool(endpoints=endpoints, tokenizer="m")], machine)
        server.shutdown()
    assert "spec.endpoints[0].url: " in line
    assert "/v1/models does not answer in the form of OpenAI's API" in line


def test_an_endpoint_without_an_answer_is_named(machine: Machine) -> None:
    (line,) = preflight([pool(endpoints=ENDPOINT, tokenizer="m")], machine, no_answer)
    assert line.startswith(
        "job.yaml: LLMPool/m: spec.endpoints[0].url: no inference server answers at http://h:1: "
    )


def test_an_endpoint_that_serves_another_model_is_named(machine: Machine) -> None:
    (line,) = preflight([pool(endpoints=ENDPOINT, tokenizer="m")], machine, serves("other"))
    assert "spec.model: http://h:1 does not serve 'm'; it serves: other" in line


def test_a_launched_model_needs_its_folder_and_vllm(machine: Machine) -> None:
    lines = preflight([pool(launch={"modelPath": "none"})], machine)
    assert any("spec.launch.modelPath: " in line and "is not a directory" in line for line in lines)
    assert any("vLLM is not installed" in line for line in lines)


def test_a_folder_without_tokenizer_is_named(machine: Machine) -> None:
    (machine.models / "bare").mkdir()
    (line,) = preflight([pool(endpoints=ENDPOINT, tokenizer="bare")], machine, serves("m"))
    assert "spec.tokenizer: " in line
    assert "has no tokenizer.json" in line
