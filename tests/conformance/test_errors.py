"""Bad requests get the server's answer, never a dropped connection."""

from __future__ import annotations

import pytest

from tests.conformance.cluster import Collection
from tests.conformance.shapes import widget
from tests.conformance.wire import Wire

UNRECOGNIZED = "the object provided is unrecognized (must be of type Widget): "


def _failure(code: int, reason: str, message: str, **details: object) -> dict[str, object]:
    status: dict[str, object] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
    return {**status, **details, "code": code}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            b'{"metadata": ',
            UNRECOGNIZED + "couldn't get version/kind; json parse error: "
            'unexpected end of JSON input ({"metadata": )',
        ),
        (
            b"",
            UNRECOGNIZED + "couldn't get version/kind; json parse error: "
            "unexpected end of JSON input (<empty>)",
        ),
        (b"{}", UNRECOGNIZED + "Object 'Kind' is missing in '{}' ({})"),
    ],
    ids=["cut short", "empty", "no kind"],
)
def test_a_body_that_is_no_object_is_a_bad_request(
    widgets: Collection, body: bytes, message: str
) -> None:
    """The 400 shows what was sent."""
    answer = widgets.api.post(widgets.path, body)
    assert answer.status == 400
    assert answer.json == _failure(400, "BadRequest", message)


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"7", b"\xff\xfe", b"{]", b"null"])
def test_json_that_is_no_object_is_a_bad_request(widgets: Collection, body: bytes) -> None:
    """Lists, scalars, invalid text and broken JSON are all 400 with a Status."""
    answer = widgets.api.post(widgets.path, body)
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
    assert answer.json["message"].startswith(UNRECOGNIZED)


@pytest.mark.parametrize("content_type", ["text/plain", "application/cbor", "multipart/form-data"])
def test_a_body_of_an_unknown_type_is_unsupported(widgets: Collection, content_type: str) -> None:
    """The 415 names what is accepted."""
    answer = widgets.api.send("POST", widgets.path, b"{}", content_type=content_type)
    assert answer.json == _failure(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf",
    )


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "FOO"])
def test_a_method_nobody_knows_is_not_allowed(widgets: Collection, method: str) -> None:
    """The 405 names the resource and no verb."""
    answer = widgets.api.send(method, widgets.path)
    assert answer.json == _failure(
        405,
        "MethodNotAllowed",
        ' is not supported on resources of kind "widgets.ex.io"',
        details={"group": "ex.io", "kind": "widgets"},
    )


def test_a_write_to_the_version_is_not_allowed(api: Wire) -> None:
    """A built-in path with another method is a 405 without details."""
    assert api.delete("/version").json == _failure(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        details={},
    )


@pytest.mark.parametrize("path", ["/api/v1/nosuch", "/api/v1/namespaces/x/nosuch", "/api/v2"])
def test_an_unknown_core_path_is_a_status(api: Wire, path: str) -> None:
    """Under /api what is not there is a Status, elsewhere text."""
    assert api.get(path).json == _failure(
        404, "NotFound", "the server could not find the requested resource", details={}
    )


@pytest.mark.parametrize(
    "path",
    [
        "/nosuch",
        "/apis/ex.io/v9",
        "/apis/ex.io/v1/gadgets",
        "/apis/ex.io/v1/Widgets",
        "/apis/ex.io/v1/widget",
        "/apis/ex.io/v1//widgets",
        "/apis/ex.io/v9/widgets",
        "/apis/ex.io/v1/namespaces/x/globes",
        "/apis/EX.io/v1/widgets",
    ],
)
def test_an_unknown_path_is_a_page_not_found(api: Wire, path: str) -> None:
    """Unknown groups, versions, resources, spellings and scopes are 19 bytes of text."""
    answer = api.get(path)
    assert (answer.status, answer.text) == (404, "404 page not found\n")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["Content-Length"] == "19"


def test_a_missing_object_is_a_status(widgets: Collection) -> None:
    """NotFound names group, resource and object."""
    assert widgets.api.get(widgets.at("nope")).json == _failure(
        404,
        "NotFound",
        'widgets.ex.io "nope" not found',
        details={"name": "nope", "group": "ex.io", "kind": "widgets"},
    )


@pytest.mark.parametrize(
    ("size", "code", "message"),
    [
        (3145728, 413, "Request entity too large: limit is 3145728"),
        (
            2500000,
            500,
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max",
        ),
        (1800000, 500, "etcdserver: request is too large"),
    ],
)
def test_an_object_that_is_too_large_is_refused(
    widgets: Collection, size: int, code: int, message: str
) -> None:
    """Over 3 MiB by HTTP, over 2 MiB and 1.5 MiB by the store."""
    answer = widgets.api.post(widgets.path, widget("big", note="x" * size))
    assert (answer.status, answer.json["code"]) == (code, code)
    assert answer.json["message"].startswith(message)
    assert widgets.api.get(widgets.path).names == []


def test_the_server_serves_on_after_a_refusal(widgets: Collection) -> None:
    """One connection takes a bad request after another and then a good one."""
    for _ in range(3):
        assert widgets.api.post(widgets.path, b"{").status == 400
    assert widgets.api.get(widgets.path).status == 200


def test_every_answer_has_its_audit_id_and_date(widgets: Collection) -> None:
    """Audit-Id is a fresh UUID, and nothing may be cached."""
    answers = [widgets.api.get(widgets.path), widgets.api.get(widgets.at("nope"))]
    for answer in answers:
        assert len(answer.headers["Audit-Id"]) == 36
        assert answer.headers["Date"].endswith("GMT")
        assert answer.headers["Cache-Control"] == "no-cache, private"
    assert answers[0].headers["Audit-Id"] != answers[1].headers["Audit-Id"]
