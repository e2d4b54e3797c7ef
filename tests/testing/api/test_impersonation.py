"""Acting as somebody else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dyninformer.testing.api.access import MASTERS, Access
from tests.testing.api.conftest import Asker
from tests.testing.api.golden import body_text

_WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class _Users(Asker):
    def __init__(self) -> None:
        access = Access()
        self.tokens = {
            "alice": access.add_user("alice"),
            "root": access.add_user("root", groups=[MASTERS]),
        }
        self.access = access
        super().__init__(access)

    def who(self, asker: str, **impersonate: str) -> dict[str, Any]:
        """Who ``asker`` is with these Impersonate headers, or the refusal."""
        headers = {"authorization": f"Bearer {self.tokens[asker]}"}
        headers |= {f"impersonate-{name}": value for name, value in impersonate.items()}
        found: dict[str, Any] = json.loads(body_text(self("POST", _WHO, {}, headers=headers)))
        return found


@pytest.fixture
def users() -> _Users:
    """alice, who has no rights, and root, who has all."""
    return _Users()


@pytest.mark.parametrize(
    ("headers", "name", "groups"),
    [
        ({"user": "bob"}, "bob", ["system:authenticated"]),
        ({"user": "bob", "group": "a, b"}, "bob", ["a", "b", "system:authenticated"]),
        ({"user": "system:anonymous"}, "system:anonymous", ["system:unauthenticated"]),
        (
            {"user": "system:serviceaccount:ns1:robot"},
            "system:serviceaccount:ns1:robot",
            ["system:serviceaccounts", "system:serviceaccounts:ns1", "system:authenticated"],
        ),
    ],
)
def test_who_may_is_who_she_says(
    users: _Users, headers: dict[str, str], name: str, groups: list[str]
) -> None:
    """Whoever may impersonate has the name and groups of the headers."""
    users.access.allow("system:anonymous")
    found = users.who("root", **headers)["status"]["userInfo"]

    assert (found["username"], found["groups"]) == (name, groups)


def test_who_may_not_is_forbidden(users: _Users) -> None:
    """The verb impersonate is needed, on the user and on each group."""
    assert users.who("alice", user="bob")["message"] == (
        'selfsubjectreviews.authentication.k8s.io is forbidden: User "alice" cannot '
        'impersonate-on:user-info:create resource "selfsubjectreviews" in API group '
        '"authentication.k8s.io" at the cluster scope'
    )
    users.access.allow("alice", verbs="impersonate", resources="users", names="bob")
    assert users.who("alice", user="bob")["status"]["userInfo"]["username"] == "bob"
    assert users.who("alice", user="bob", group="admins")["code"] == 403
    assert users.who("alice", user="eve")["code"] == 403


def test_groups_need_a_user(users: _Users) -> None:
    """Groups without a user are refused."""
    assert users.who("root", group="admins")["code"] == 400
