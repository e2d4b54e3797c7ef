"""Questions about users and rights."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from dyninformer.testing.api.access import MASTERS, Access
from tests.testing.api.conftest import Asker
from tests.testing.api.golden import body_text, recordings

_AUTHORIZATION = "/apis/authorization.k8s.io/v1"
_AUTHENTICATION = "/apis/authentication.k8s.io/v1"
_LIST = {"group": "ex.io", "resource": "widgets", "verb": "list", "namespace": "ns1"}


class _Users(Asker):
    def __init__(self) -> None:
        access = Access()
        self.tokens = {
            "alice": access.add_user("alice", groups=["devs"]),
            "root": access.add_user("root", groups=[MASTERS]),
        }
        self.access = access
        super().__init__(access)

    def review(self, user: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The review that ``user`` gets."""
        answer = self("POST", path, body, headers={"authorization": f"Bearer {self.tokens[user]}"})
        found: dict[str, Any] = json.loads(body_text(answer))
        return found


@pytest.fixture
def users() -> _Users:
    """alice, who has no rights, and root, who has all."""
    return _Users()


def test_a_user_learns_who_she_is(users: _Users) -> None:
    """A SelfSubjectReview names the user and her groups."""
    found = users.review("alice", f"{_AUTHENTICATION}/selfsubjectreviews", {})

    expected = recordings("auth")["SelfSubjectReview"].response["body"]
    assert found["status"] == expected["status"]
    assert (found["kind"], found["apiVersion"]) == ("SelfSubjectReview", expected["apiVersion"])


def test_a_user_learns_what_she_may(users: _Users) -> None:
    """A SelfSubjectAccessReview says whether, and by what."""
    path, spec = f"{_AUTHORIZATION}/selfsubjectaccessreviews", {"resourceAttributes": _LIST}
    assert users.review("alice", path, {"spec": spec})["status"] == {"allowed": False}
    assert users.review("root", path, {"spec": spec})["status"] == {"allowed": True}

    users.access.allow("alice", resources="widgets")
    assert users.review("alice", path, {"spec": spec})["status"] == {"allowed": True}
    metrics = {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    assert users.review("alice", path, {"spec": metrics})["status"] == {"allowed": False}


def test_kubectl_may_ask_in_protobuf(users: _Users) -> None:
    """``kubectl auth can-i`` sends protobuf and reads JSON."""
    data = Path(__file__).parents[2] / "data" / "kubectl-protobuf.json"
    recorded = json.loads(data.read_text(encoding="utf-8"))["auth can-i get"]
    answer = users(
        "POST", recorded["path"], body=base64.b64decode(recorded["body"]),
        headers={
            "authorization": f"Bearer {users.tokens['root']}",
            "content-type": recorded["content_type"],
            "accept": "application/vnd.kubernetes.protobuf,application/json",
        },
    )  # fmt: skip

    assert (answer.status, json.loads(body_text(answer))["status"]) == (201, {"allowed": True})


def test_a_question_about_nothing_is_refused(users: _Users) -> None:
    """A review must ask about a resource or a path, as recorded."""
    found = users.review("alice", f"{_AUTHORIZATION}/selfsubjectaccessreviews", {"spec": {}})

    assert found == recordings("auth")["SSAR empty spec"].response["body"]


def test_others_can_be_asked_about(users: _Users) -> None:
    """A SubjectAccessReview is about whoever it names, and is not for everybody."""
    path = f"{_AUTHORIZATION}/subjectaccessreviews"
    users.access.allow("bob", resources="widgets")
    body = {"spec": {"user": "bob", "resourceAttributes": _LIST}}

    assert users.review("root", path, body)["status"] == {"allowed": True}
    assert users.review("alice", path, body)["code"] == 403


def test_a_token_can_be_asked_about(users: _Users) -> None:
    """A TokenReview says whose token it is."""
    path = f"{_AUTHENTICATION}/tokenreviews"
    known = users.review("root", path, {"spec": {"token": users.tokens["alice"]}})
    assert known["status"]["user"]["username"] == "alice"
    unknown = users.review("root", path, {"spec": {"token": "x"}})
    assert "authenticated" not in unknown["status"]


def test_the_rules_of_a_user_are_listed(users: _Users) -> None:
    """A SelfSubjectRulesReview lists what everybody has, and what bindings give."""
    path = f"{_AUTHORIZATION}/selfsubjectrulesreviews"
    found = users.review("alice", path, {"spec": {"namespace": "ns1"}})["status"]

    recorded = recordings("auth")["SelfSubjectRulesReview"].response["body"]["status"]
    assert found["nonResourceRules"] == recorded["nonResourceRules"]
    assert found["resourceRules"] == recorded["resourceRules"][:2]  # the third is a binding's
    assert users.review("alice", path, {"spec": {}})["code"] == 422
