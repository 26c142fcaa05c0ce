"""The audit log is read as it is written: whole lines, whatever kind of request they tell of."""

import json
from pathlib import Path

from hack.kube.audit import Request, requests

EVENT = {
    "user": {"username": "system:serviceaccount:default:operator"},
    "verb": "patch",
    "userAgent": "kopf",
    "objectRef": {
        **{"resource": "rolloutjobs", "subresource": "status", "namespace": "n", "name": "j"},
    },
    "responseStatus": {"code": 200},
}


def test_a_line_that_is_still_written_is_left_for_later(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(f"{json.dumps(EVENT)}\n{json.dumps(EVENT)[:40]}")
    (request,) = requests(log)
    assert request == Request(
        user="system:serviceaccount:default:operator",
        verb="patch",
        resource="rolloutjobs/status",
        namespace="n",
        name="j",
        code=200,
        user_agent="kopf",
    )
    assert request.is_write


def test_a_request_for_no_object_is_no_write(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(json.dumps({"user": {"username": "admin"}, "verb": "get"}) + "\n")
    (request,) = requests(log)
    assert (request.resource, request.code, request.is_write) == ("", 0, False)
