"""From an HTTP answer to an error that a caller can act on."""

import pytest

from rollout_client.errors import (
    Conflict,
    FieldError,
    GatewayError,
    Invalid,
    NotFound,
    ServerError,
    TooManyRequests,
    Unavailable,
    error_from_problem,
)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, Invalid),
        (404, NotFound),
        (409, Conflict),
        (422, Invalid),
        (429, TooManyRequests),
        (500, ServerError),
        (503, Unavailable),
        (418, GatewayError),
    ],
)
def test_the_status_decides_the_class(status: int, expected: type[GatewayError]) -> None:
    assert type(error_from_problem(status, {"detail": "x"}, "GET /")) is expected


def test_a_problem_keeps_its_reason_and_fields() -> None:
    problem = {
        "detail": "the spec is invalid",
        "reason": "InvalidSpec",
        "errors": [{"field": "spec.handler", "message": "may not change"}],
    }
    error = error_from_problem(422, problem, "PUT /v1/rolloutjobs/a")
    assert error.reason == "InvalidSpec"
    assert error.field_errors == (FieldError("spec.handler", "may not change"),)
    assert str(error) == (
        "the spec is invalid; spec.handler: may not change (PUT /v1/rolloutjobs/a)"
    )


@pytest.mark.parametrize("body", [None, "<html>", [], {"errors": "no list"}])
def test_a_body_that_is_no_problem_still_gives_an_error(body: object) -> None:
    error = error_from_problem(502, body, "GET /v1/pods")
    assert error.detail == "HTTP status 502"
    assert error.field_errors == ()
