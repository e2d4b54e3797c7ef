"""Acting as somebody else, in whatever way requests are made."""

from __future__ import annotations

from contextlib import closing

import pytest

from dyninformer.errors import ConfigError
from dyninformer.testing import ApiServer
from dyninformer.transport.config import Overrides
from dyninformer.transport.impersonation import impersonation_headers
from dyninformer.watching import client
from dyninformer.watching.client import Source

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
ALICE = Overrides(as_user="alice", as_groups=("devs", "ops"))


def asked_as(source: Source) -> tuple[str, list[str]]:
    """Whom the server takes it for."""
    reply = source.post_json(WHO, REVIEW)
    assert isinstance(reply.body, dict)
    found = reply.body["status"]["userInfo"]
    return found["username"], found["groups"]


def test_all_requests_are_those_of_the_user_that_is_named(secure: ApiServer) -> None:
    """With all groups; the client for writes as well, and a source that is made of it."""
    with closing(Source(kubeconfig=secure.kubeconfig(), overrides=ALICE)) as source:
        assert asked_as(source) == ("alice", ["devs", "ops", "system:authenticated"])
        with closing(Source(source.writes_client)) as second:
            assert asked_as(second)[0] == "alice"


def test_where_a_client_cannot_be_copied_nothing_is_asked_with_more_rights(
    secure: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The requests that are made in its place are the user's, too."""

    def refuse(*_: object) -> None:
        raise TypeError

    monkeypatch.setattr(client, "_copied", refuse)
    with closing(Source(kubeconfig=secure.kubeconfig(), overrides=ALICE)) as source:
        assert asked_as(source)[0] == "alice"


def test_names_are_sent_as_go_sends_them() -> None:
    """UTF-8, and keys of extra fields as a URL has them."""
    found = dict(impersonation_headers("zoë", extra={"Scopes/A": ["x"]}))
    assert found["Impersonate-User"].encode("latin-1") == "zoë".encode()
    assert found["Impersonate-Extra-scopes%2Fa"] == "x"


@pytest.mark.parametrize(
    ("user", "groups", "why"),
    [("", ["devs"], "name the user as well"), ("a\r\nb: c", [], "no control characters")],
)
def test_what_cannot_be_sent_is_refused_in_words(user: str, groups: list[str], why: str) -> None:
    """Before anything is asked."""
    with pytest.raises(ConfigError, match=why):
        impersonation_headers(user, groups=groups)
