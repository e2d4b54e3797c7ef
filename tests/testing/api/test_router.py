"""What the API makes of a request as a whole."""

from __future__ import annotations

import gzip
import json
import logging

import pytest

from dyninformer.testing.api.access import Access
from dyninformer.testing.api.bodies import BODY_LIMIT
from dyninformer.testing.cluster.writer import Writer
from tests.testing.api.conftest import WIDGETS, Asker, lines, widget
from tests.testing.api.golden import body_text

_CONFIGS = "/api/v1/namespaces/ns1/configmaps"


class TestPaths:
    """Which path is served, and what is said of others."""

    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("GET", "/nope"),
            ("GET", "/apis/nope.io/v1/things"),
            ("GET", "/apis/ex.io/v1/nopes"),
            ("GET", "/apis/ex.io/v9/widgets"),
            ("GET", "/apis/ex.io/v1//widgets"),
            ("GET", "/apis/ex.io/v1/Widgets"),
            ("GET", "/apis/ex.io/v1/widgets/a"),
            ("POST", "/apis/ex.io/v1/widgets"),
            ("DELETE", "/apis/ex.io/v1/widgets"),
            ("GET", "/apis/nope.io/v1"),
            ("GET", "/healthz/"),
        ],
    )
    def test_a_path_that_nothing_serves_is_a_404_in_text(
        self, ask: Asker, method: str, path: str
    ) -> None:
        """A path that nothing serves is 19 bytes of text, never a Status."""
        answer = ask(method, path)

        assert (answer.status, answer.body) == (404, b"404 page not found\n")
        assert dict(answer.headers)["Content-Type"] == "text/plain; charset=utf-8"
        assert dict(answer.headers)["X-Content-Type-Options"] == "nosniff"

    @pytest.mark.parametrize(
        "path",
        [
            "/api/v1/nopes",
            "/api/v2",
            "/api/v1/configmaps/a",
            "/api/v1/namespaces/ns1/nodes",
            "/apis/apps/v9/deployments",
            f"{_CONFIGS}/a/status",
        ],
    )
    def test_under_built_in_groups_it_is_a_status(self, ask: Asker, path: str) -> None:
        """Under the groups that are built in, what is not there is a Status."""
        status = ask.refused("GET", path)

        assert status["message"] == "the server could not find the requested resource"
        assert (status["code"], status["details"]) == (404, {})

    @pytest.mark.parametrize(
        "path",
        ["/apis/ex.io/v1/widgets", "/apis/ex.io/v1/namespaces//widgets", f"{WIDGETS}/", WIDGETS],
    )
    def test_an_empty_namespace_and_a_trailing_slash_are_overlooked(
        self, ask: Asker, path: str
    ) -> None:
        """An empty namespace means all, a trailing slash nothing."""
        ask.create(WIDGETS, widget("a"))

        assert [each["metadata"]["name"] for each in ask.get(path)["items"]] == ["a"]

    def test_the_old_watch_path_watches(self, ask: Asker) -> None:
        """``/watch/`` in a path watches, a collection or one name of it."""
        for name in ("a", "b"):
            ask.create(WIDGETS, widget(name))

        for path, names in (("widgets", ["a", "b"]), ("widgets/b", ["b"])):
            stream = ask.watch(f"/apis/ex.io/v1/watch/namespaces/ns1/{path}")
            assert [line["object"]["metadata"]["name"] for line in lines(stream)] == names

    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("POST", f"{_CONFIGS}/a"),
            ("PUT", _CONFIGS),
            ("PATCH", _CONFIGS),
            ("OPTIONS", _CONFIGS),
            ("DELETE", "/api/v1/configmaps"),
            ("POST", "/api/v1/configmaps"),
            ("DELETE", "/api/v1/namespaces"),
            ("POST", "/version"),
            ("POST", "/api"),
            ("GET", "/api/v1/namespaces/ns1/finalize"),
            ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ],
    )
    def test_a_method_that_a_built_in_path_does_not_take_is_a_405(
        self, ask: Asker, method: str, path: str
    ) -> None:
        """A built-in path refuses methods it does not take with a 405."""
        status = ask.refused(method, path)

        assert (status["code"], status["reason"]) == (405, "MethodNotAllowed")
        assert status["message"] == (
            "the server does not allow this method on the requested resource"
        )

    @pytest.mark.parametrize(
        ("method", "path", "verb"),
        [
            ("OPTIONS", WIDGETS, ""),
            ("POST", f"{WIDGETS}/a/status", "create"),
            ("DELETE", f"{WIDGETS}/a/scale", "delete"),
        ],
    )
    def test_a_method_that_a_custom_resource_does_not_take_is_a_405(
        self, ask: Asker, method: str, path: str, verb: str
    ) -> None:
        """The 405 of a custom resource names verb and resource."""
        status = ask.refused(method, path)

        expected = f'{verb} is not supported on resources of kind "widgets.ex.io"'
        assert (status["code"], status["message"]) == (405, expected)

    def test_a_namespace_is_an_object_of_its_own(self, ask: Asker) -> None:
        """A namespace is read, patched and finalized under its name."""
        path = "/api/v1/namespaces/ns1"

        assert ask.get(path)["metadata"]["name"] == "ns1"
        assert ask.get(f"{path}/status")["status"] == {"phase": "Active"}
        headers = {"content-type": "application/merge-patch+json"}
        patched = ask("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, headers=headers)
        assert patched.status == 200


class TestForms:
    """The form of an answer."""

    def test_head_is_answered_as_get(self, ask: Asker) -> None:
        """HEAD has the status and headers of GET; the connection leaves out the body."""
        ask.create(WIDGETS, widget("a"))

        for path in (WIDGETS, f"{WIDGETS}/a", f"{WIDGETS}/nope", "/apis"):
            head, get = ask("HEAD", path), ask("GET", path)
            assert (head.status, head.headers) == (get.status, get.headers)

    @pytest.mark.parametrize(
        ("accept_encoding", "compressed"),
        [
            ("gzip", True),
            ("deflate, gzip, br", True),
            ("gzip;q=0.5", False),
            ("GZIP", False),
            ("*", False),
            ("", False),
        ],
    )
    def test_only_large_bodies_are_compressed_and_only_for_gzip(
        self, ask: Asker, accept_encoding: str, compressed: bool
    ) -> None:
        """Above 128 kiB a body is compressed for who accepts exactly gzip."""
        ask.create(WIDGETS, widget("small"))
        headers = {"accept-encoding": accept_encoding}
        small = ask("GET", WIDGETS, headers=headers)
        assert "Content-Encoding" not in dict(small.headers)

        ask.create(WIDGETS, widget("large", text="x" * 140_000))
        plain = body_text(ask("GET", WIDGETS))
        large = ask("GET", WIDGETS, headers=headers)
        if not compressed:
            assert body_text(large) == plain
            return
        assert isinstance(large.body, bytes)
        assert gzip.decompress(large.body).decode() == plain
        found = dict(large.headers)
        assert (found["Content-Encoding"], found["Vary"]) == ("gzip", "Accept-Encoding")

    def test_a_failure_is_told_in_yaml_to_who_reads_yaml(self, ask: Asker) -> None:
        """A Status comes in the form that was accepted, indented JSON if none can be."""
        yaml = ask("GET", f"{WIDGETS}/a", headers={"accept": "application/yaml"})
        assert body_text(yaml).startswith("apiVersion: v1\ncode: 404\n")

        html = ask("GET", WIDGETS, headers={"accept": "text/html"})
        assert html.status == 406
        assert body_text(html).startswith('{\n  "kind": "Status"')

    def test_warnings_are_headers(self, ask: Asker) -> None:
        """An unknown field is warned of in a header, its quotes escaped."""
        answer = ask("POST", _CONFIGS, {"metadata": {"name": "a"}, "bogus": 1})

        assert answer.status == 201
        assert ("Warning", '299 - "unknown field \\"bogus\\""') in answer.headers


class TestBodies:
    """Bodies that are none."""

    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
    @pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b"\xff\xfe", b"[" * 100_000])
    @pytest.mark.parametrize("path", [WIDGETS, _CONFIGS])
    def test_a_bad_body_is_a_400(self, ask: Asker, method: str, body: bytes, path: str) -> None:
        """Whatever cannot be read is a 400 with a Status, never a traceback."""
        kind = "merge-patch+json" if method == "PATCH" else "json"
        headers = {"content-type": f"application/{kind}"}
        target = path if method == "POST" else f"{path}/a"
        ask("POST", path, {**widget("a"), "apiVersion": "v1", "kind": "ConfigMap"})
        ask.create(WIDGETS, widget("b"))

        status = ask.refused(
            method, target.replace("widgets/a", "widgets/b"), body=body, headers=headers
        )

        assert (status["code"], status["reason"]) == (400, "BadRequest")

    def test_a_body_over_the_limit_is_a_413(self, ask: Asker) -> None:
        """A body of more than 3 MiB is a 413, wherever it is sent."""
        for path in (WIDGETS, "/version", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"):
            status = ask.refused("POST", path, body=b" " * (BODY_LIMIT + 1))
            assert status["message"] == "Request entity too large: limit is 3145728"
            assert (status["code"], status["reason"]) == (413, "RequestEntityTooLarge")

    @pytest.mark.parametrize(
        ("method", "path", "sent", "taken"),
        [
            ("POST", WIDGETS, "text/plain", "application/json, application/yaml, "),
            ("DELETE", f"{WIDGETS}/a", "text/plain", "application/json, application/yaml, "),
            ("PATCH", f"{WIDGETS}/a", "application/json", "application/json-patch+json, "),
            (
                "PATCH",
                f"{WIDGETS}/a",
                "application/strategic-merge-patch+json",
                "application/json-patch+json, ",
            ),
        ],
    )
    def test_an_unknown_format_is_a_415_that_names_the_known(
        self, ask: Asker, method: str, path: str, sent: str, taken: str
    ) -> None:
        """A format that is not taken is a 415 that names those that are."""
        status = ask.refused(method, path, {}, headers={"content-type": sent})

        assert (status["code"], status["reason"]) == (415, "UnsupportedMediaType")
        assert f"accepted media types include: {taken}" in status["message"]


class TestUsers:
    """Who may ask."""

    def test_without_a_token_the_user_is_the_anonymous_one_of_access(self, ask: Asker) -> None:
        """An API whose anonymous user may do all asks nobody for a token."""
        assert ask("GET", "/apis").status == 200

    def test_a_token_is_needed_where_there_is_access_control(self) -> None:
        """401 for an unknown token, 403 before 404 for who may not."""
        access = Access()
        token = access.add_user("alice")
        ask = Asker(access)
        wrong = ask("GET", "/version", headers={"authorization": "Bearer x"})
        assert (wrong.status, json.loads(body_text(wrong))["message"]) == (401, "Unauthorized")

        alice = {"authorization": f"Bearer {token}"}
        assert ask("GET", "/apis/nope.io/v1/things", headers=alice).status == 403
        access.allow("alice", groups="nope.io")
        assert ask("GET", "/apis/nope.io/v1/things", headers=alice).status == 404


def test_a_mistake_inside_is_a_500_that_names_its_class(
    ask: Asker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An unexpected exception is answered, and logged without what it says."""
    secret = "".join(["hunt", "er2"])

    def fail(*_: object) -> None:
        raise LookupError(secret)

    monkeypatch.setattr(Writer, "create", fail)
    with caplog.at_level(logging.ERROR):
        status = ask.refused("POST", WIDGETS, widget("a"))

    assert (status["code"], status["reason"]) == (500, "InternalError")
    assert status["message"] == "Internal error occurred: LookupError"
    assert "LookupError" in caplog.text
    assert secret not in caplog.text
    assert secret not in json.dumps(status)
