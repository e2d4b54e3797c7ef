"""Tokens, declared rules and RBAC objects."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from dyninformer.testing.api.access import ANONYMOUS, MASTERS, Access, Rbac, Rights, User
from dyninformer.testing.cluster.log import GroupResource, Key, Log
from dyninformer.testing.messages import Request, RequestInfo, read_request_info
from dyninformer.testing.status import ApiError
from tests.testing.api.conftest import Asker
from tests.testing.api.golden import body_text, recordings

_RBAC = "rbac.authorization.k8s.io"
_LIST = read_request_info(Request("GET", "/apis/ex.io/v1/namespaces/ns1/widgets"))
_LIST_ALL = read_request_info(Request("GET", "/apis/ex.io/v1/widgets"))
_GET_STATUS = read_request_info(Request("GET", "/apis/ex.io/v1/namespaces/ns1/widgets/w0/status"))
_LIST_W0 = read_request_info(
    Request(
        "GET", "/apis/ex.io/v1/namespaces/ns1/widgets", (("fieldSelector", "metadata.name=w0"),)
    )
)


def _bearing(authorization: str) -> Request:
    return Request("GET", "/", headers={"authorization": authorization})


class _World:
    """A log with RBAC objects, and an Access with alice, of group devs."""

    def __init__(self) -> None:
        self.log = Log()
        self.access = Access()
        token = self.access.add_user("alice", groups=["devs"])
        self.alice = self.access.receive(_bearing(f"Bearer {token}")).authenticated()
        self.rights = Rights(self.access, Rbac(lambda: self.log))

    def put(self, plural: str, name: str, namespace: str = "", **fields: Any) -> None:
        """Write one RBAC object."""
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        obj = {"metadata": metadata, **fields}
        self.log.append(GroupResource(_RBAC, plural), Key(namespace, name), obj)

    def may(self, info: RequestInfo) -> bool:
        """Whether alice may."""
        return self.rights.decide(self.alice, info).allowed


@pytest.fixture
def world() -> _World:
    """A world without any rights."""
    return _World()


def _role(*verbs: str, **more: Any) -> list[dict[str, Any]]:
    return [{"apiGroups": ["ex.io"], "resources": ["widgets"], "verbs": list(verbs), **more}]


_TO_ALICE = [{"kind": "User", "name": "alice"}]


class TestTokens:
    """Who a request comes from."""

    def test_a_token_is_its_users(self) -> None:
        """A token stands for the user it was made for, with the groups given."""
        access = Access()
        token = access.add_user("alice", groups=["devs"])

        received = access.receive(_bearing(f"bearer  {token}"))
        assert received.user == User("alice", ("devs", "system:authenticated"), "alice")

    @pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer ", "Basic YTpi"])
    def test_whoever_bears_no_token_is_anonymous(self, authorization: str) -> None:
        """Without a bearer token the user is anonymous, not refused."""
        assert Access().receive(_bearing(authorization)).user is ANONYMOUS

    def test_a_wrong_token_is_a_401(self) -> None:
        """A token that nobody has, or has no more, is a 401."""
        access = Access()
        token = access.add_user("alice")
        access.remove_token(token)

        for wrong in ("x", token):
            with pytest.raises(ApiError, match="Unauthorized") as refused:
                access.receive(_bearing(f"Bearer {wrong}")).authenticated()
            assert refused.value.code == 401

    def test_tokens_do_not_show(self) -> None:
        """The representation of an Access shows users, never tokens."""
        access = Access()
        access.add_user("alice", token="s3cret")

        assert "alice" in repr(access)
        assert "s3cret" not in repr(access)


class TestRefusals:
    """The words of a 403."""

    @pytest.mark.parametrize(
        ("request_", "message", "details"),
        [
            (
                Request("GET", "/apis/ex.io/v1/namespaces/ns1/widgets"),
                (
                    'widgets.ex.io is forbidden: User "alice" cannot list resource "widgets" '
                    'in API group "ex.io" in the namespace "ns1"'
                ),
                {"group": "ex.io", "kind": "widgets"},
            ),
            (
                Request("GET", "/apis/ex.io/v1/widgets"),
                (
                    'widgets.ex.io is forbidden: User "alice" cannot list resource "widgets" '
                    'in API group "ex.io" at the cluster scope'
                ),
                {"group": "ex.io", "kind": "widgets"},
            ),
            (
                Request("GET", "/apis/ex.io/v1/namespaces/ns1/widgets/w0/status"),
                (
                    'widgets.ex.io "w0" is forbidden: User "alice" cannot get resource '
                    '"widgets/status" in API group "ex.io" in the namespace "ns1"'
                ),
                {"name": "w0", "group": "ex.io", "kind": "widgets"},
            ),
            (
                Request("GET", "/api/v1/namespaces/ns1/pods"),
                (
                    'pods is forbidden: User "alice" cannot list resource "pods" in API group "" '
                    'in the namespace "ns1"'
                ),
                {"kind": "pods"},
            ),
            (
                Request("GET", "/metrics"),
                'forbidden: User "alice" cannot get path "/metrics"',
                {},
            ),
        ],
    )
    def test_a_refusal_says_who_what_and_where(
        self, world: _World, request_: Request, message: str, details: dict[str, str]
    ) -> None:
        """A refusal says who may not do what, and where."""
        with pytest.raises(ApiError) as refused:
            world.rights.check(world.alice, read_request_info(request_))

        assert refused.value.message == message
        assert refused.value.body()["details"] == details
        assert refused.value.headers == (("X-Content-Type-Options", "nosniff"),)


class TestDeclaredRules:
    """Rules made in Python."""

    def test_a_user_can_be_allowed_and_denied(self, world: _World) -> None:
        """The newest rule that speaks of a request decides."""
        assert not world.may(_LIST)
        world.access.allow("alice", resources="widgets")
        assert world.may(_LIST)
        rule = world.access.deny("alice", verbs=["list"], resources="widgets")
        assert not world.may(_LIST)
        world.access.remove(rule)
        assert world.may(_LIST)
        world.access.clear()
        assert not world.may(_LIST)

    def test_members_of_system_masters_may_do_all_but_what_is_denied_them(
        self, world: _World
    ) -> None:
        """system:masters may do all, except what a rule denies."""
        root = User("root", (MASTERS,))
        assert world.rights.decide(root, _LIST).allowed
        world.access.deny("root", resources="widgets")
        assert not world.rights.decide(root, _LIST).allowed

    def test_a_refusal_says_the_reason_of_the_rule(self, world: _World) -> None:
        """So that nobody looks for a right to be given."""
        world.access.deny("*", verbs="create", reason="this server is read-only")
        info = read_request_info(Request("POST", "/api/v1/namespaces/ns1/pods"))
        with pytest.raises(ApiError, match=r'in the namespace "ns1": this server is read-only$'):
            world.rights.check(User("alice"), info)

    @pytest.mark.parametrize("who", ["alice", "*", "group:devs"])
    def test_a_rule_reaches_a_user_a_group_or_all(self, world: _World, who: str) -> None:
        """A rule is for a user, a group, or everybody."""
        world.access.allow(who)
        assert world.may(_LIST)
        assert world.may(read_request_info(Request("GET", "/metrics")))

    @pytest.mark.parametrize(
        ("about", "reached"),
        [
            ({"groups": "ex.io"}, {"list", "all", "status", "named"}),
            ({"resources": "widgets/status"}, {"status"}),
            ({"resources": "*/status"}, {"status"}),
            ({"namespaces": "ns1"}, {"list", "status", "named"}),
            ({"names": "w0"}, {"status", "named"}),
            ({"paths": "/metrics"}, {"path"}),
            ({"paths": "/met*"}, {"path"}),
            ({"paths": "/other"}, set()),
        ],
    )
    def test_a_rule_is_no_wider_than_it_says(
        self, world: _World, about: dict[str, str], reached: set[str]
    ) -> None:
        """A rule reaches what it speaks of and nothing else."""
        world.access.allow("alice", **about)
        requests = {
            "list": _LIST,
            "all": _LIST_ALL,
            "status": _GET_STATUS,
            "named": _LIST_W0,
            "path": RequestInfo("/metrics", "get"),
        }

        assert {name for name, info in requests.items() if world.may(info)} == reached


class TestRbac:
    """Roles and bindings in the cluster."""

    def test_a_role_binding_gives_rights_in_its_namespace(self, world: _World) -> None:
        """A RoleBinding gives its role's rights in its own namespace, from the next request on."""
        world.put("roles", "wr", "ns1", rules=_role("list"))
        ref = {"kind": "Role", "name": "wr"}
        world.put("rolebindings", "wr", "ns1", roleRef=ref, subjects=_TO_ALICE)

        decision = world.rights.decide(world.alice, _LIST)
        assert decision.reason == (
            'RBAC: allowed by RoleBinding "wr/ns1" of Role "wr" to User "alice"'
        )
        assert decision.allowed
        assert not world.may(_LIST_ALL)

        world.log.append(GroupResource(_RBAC, "rolebindings"), Key("ns1", "wr"), None)
        assert not world.may(_LIST)

    def test_a_cluster_role_binding_gives_rights_everywhere(self, world: _World) -> None:
        """A ClusterRoleBinding gives rights at the cluster scope and in every namespace."""
        world.put("clusterroles", "all", rules=_role("*"))
        ref = {"kind": "ClusterRole", "name": "all"}
        to_devs = [{"kind": "Group", "name": "devs"}]
        world.put("clusterrolebindings", "devs", roleRef=ref, subjects=to_devs)

        assert world.may(_LIST)
        assert world.may(_LIST_ALL)
        assert not world.may(_GET_STATUS)

    def test_a_cluster_role_can_be_bound_in_one_namespace(self, world: _World) -> None:
        """A ClusterRole bound by a RoleBinding counts in that namespace alone."""
        world.put("clusterroles", "all", rules=_role("list"))
        ref = {"kind": "ClusterRole", "name": "all"}
        world.put("rolebindings", "b", "ns1", roleRef=ref, subjects=_TO_ALICE)

        assert world.may(_LIST)
        assert not world.may(_LIST_ALL)

    def test_resource_names_reach_lists_of_that_name(self, world: _World) -> None:
        """A rule with resourceNames allows a list only if it selects that name."""
        world.put("roles", "one", "ns1", rules=_role("list", resourceNames=["w0"]))
        ref = {"kind": "Role", "name": "one"}
        world.put("rolebindings", "b", "ns1", roleRef=ref, subjects=_TO_ALICE)

        assert world.may(_LIST_W0)
        assert not world.may(_LIST)

    def test_a_service_account_is_a_subject(self, world: _World) -> None:
        """A ServiceAccount is bound by its namespace and name."""
        world.put("roles", "wr", "ns1", rules=_role("list"))
        ref = {"kind": "Role", "name": "wr"}
        account = [{"kind": "ServiceAccount", "name": "sa1", "namespace": "ns1"}]
        world.put("rolebindings", "b", "ns1", roleRef=ref, subjects=account)
        user = User("system:serviceaccount:ns1:sa1", ("system:authenticated",))

        assert world.rights.decide(user, _LIST).allowed
        assert not world.may(_LIST)

    @pytest.mark.parametrize(
        ("path", "anonymous", "alice"),
        [
            ("/version", True, True),
            ("/readyz", True, True),
            ("/apis", False, True),
            ("/apis/ex.io/v1", False, True),
            ("/openapi/v3", False, True),
            ("/metrics", False, False),
        ],
    )
    def test_discovery_is_for_whoever_is_known(
        self, world: _World, path: str, anonymous: bool, alice: bool
    ) -> None:
        """Without any role a known user can read discovery, an anonymous one health and version."""
        info = read_request_info(Request("GET", path))

        assert world.rights.decide(ANONYMOUS, info).allowed == anonymous
        assert world.may(info) == alice


_WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class _Impersonators(Asker):
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
def impersonators() -> _Impersonators:
    """alice, who has no rights, and root, who has all."""
    return _Impersonators()


@pytest.mark.parametrize(
    ("headers", "name", "groups"),
    [
        ({"user": "bob"}, "bob", ["system:authenticated"]),
        ({"user": "bob", "group": "a\nb"}, "bob", ["a", "b", "system:authenticated"]),
        ({"user": "system:anonymous"}, "system:anonymous", ["system:unauthenticated"]),
        (
            {"user": "system:serviceaccount:ns1:robot"},
            "system:serviceaccount:ns1:robot",
            ["system:serviceaccounts", "system:serviceaccounts:ns1", "system:authenticated"],
        ),
    ],
)
def test_who_may_is_who_she_says(
    impersonators: _Impersonators, headers: dict[str, str], name: str, groups: list[str]
) -> None:
    """Whoever may impersonate has the name and groups of the headers."""
    impersonators.access.allow("system:anonymous")
    found = impersonators.who("root", **headers)["status"]["userInfo"]

    assert (found["username"], found["groups"]) == (name, groups)


def test_who_may_not_is_forbidden(impersonators: _Impersonators) -> None:
    """The verb impersonate is needed, on the user and on each group."""
    assert impersonators.who("alice", user="bob")["message"] == (
        'selfsubjectreviews.authentication.k8s.io is forbidden: User "alice" cannot '
        'impersonate-on:user-info:create resource "selfsubjectreviews" in API group '
        '"authentication.k8s.io" at the cluster scope'
    )
    impersonators.access.allow("alice", verbs="impersonate", resources="users", names="bob")
    assert impersonators.who("alice", user="bob")["status"]["userInfo"]["username"] == "bob"
    assert impersonators.who("alice", user="bob", group="admins")["code"] == 403
    assert impersonators.who("alice", user="eve")["code"] == 403


def test_groups_need_a_user(impersonators: _Impersonators) -> None:
    """Groups without a user are refused."""
    assert impersonators.who("root", group="admins")["code"] == 400


_AUTHORIZATION = "/apis/authorization.k8s.io/v1"
_AUTHENTICATION = "/apis/authentication.k8s.io/v1"
_LISTING = {"group": "ex.io", "resource": "widgets", "verb": "list", "namespace": "ns1"}


class _Reviewers(Asker):
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
def reviewers() -> _Reviewers:
    """alice, who has no rights, and root, who has all."""
    return _Reviewers()


def test_a_user_learns_who_she_is(reviewers: _Reviewers) -> None:
    """A SelfSubjectReview names the user and her groups."""
    found = reviewers.review("alice", f"{_AUTHENTICATION}/selfsubjectreviews", {})

    expected = recordings("auth")["SelfSubjectReview"].response["body"]
    assert found["status"] == expected["status"]
    assert (found["kind"], found["apiVersion"]) == ("SelfSubjectReview", expected["apiVersion"])


def test_a_user_learns_what_she_may(reviewers: _Reviewers) -> None:
    """A SelfSubjectAccessReview says whether, and by what."""
    path, spec = f"{_AUTHORIZATION}/selfsubjectaccessreviews", {"resourceAttributes": _LISTING}
    assert reviewers.review("alice", path, {"spec": spec})["status"] == {"allowed": False}
    assert reviewers.review("root", path, {"spec": spec})["status"] == {"allowed": True}

    reviewers.access.allow("alice", resources="widgets")
    assert reviewers.review("alice", path, {"spec": spec})["status"] == {"allowed": True}
    metrics = {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    assert reviewers.review("alice", path, {"spec": metrics})["status"] == {"allowed": False}


def test_kubectl_may_ask_in_protobuf(reviewers: _Reviewers) -> None:
    """``kubectl auth can-i`` sends protobuf and reads JSON."""
    data = Path(__file__).parents[2] / "data" / "kubectl-protobuf.json"
    recorded = json.loads(data.read_text(encoding="utf-8"))["auth can-i get"]
    answer = reviewers(
        "POST",
        recorded["path"],
        body=base64.b64decode(recorded["body"]),
        headers={
            "authorization": f"Bearer {reviewers.tokens['root']}",
            "content-type": recorded["content_type"],
            "accept": "application/vnd.kubernetes.protobuf,application/json",
        },
    )

    assert (answer.status, json.loads(body_text(answer))["status"]) == (201, {"allowed": True})


def test_a_question_about_nothing_is_refused(reviewers: _Reviewers) -> None:
    """A review must ask about a resource or a path, as recorded."""
    found = reviewers.review("alice", f"{_AUTHORIZATION}/selfsubjectaccessreviews", {"spec": {}})

    assert found == recordings("auth")["SSAR empty spec"].response["body"]


def test_others_can_be_asked_about(reviewers: _Reviewers) -> None:
    """A SubjectAccessReview is about whoever it names, and is not for everybody."""
    path = f"{_AUTHORIZATION}/subjectaccessreviews"
    reviewers.access.allow("bob", resources="widgets")
    body = {"spec": {"user": "bob", "resourceAttributes": _LISTING}}

    assert reviewers.review("root", path, body)["status"] == {"allowed": True}
    assert reviewers.review("alice", path, body)["code"] == 403


def test_a_token_can_be_asked_about(reviewers: _Reviewers) -> None:
    """A TokenReview says whose token it is."""
    path = f"{_AUTHENTICATION}/tokenreviews"
    known = reviewers.review("root", path, {"spec": {"token": reviewers.tokens["alice"]}})
    assert known["status"]["user"]["username"] == "alice"
    unknown = reviewers.review("root", path, {"spec": {"token": "x"}})
    assert "authenticated" not in unknown["status"]


def test_the_rules_of_a_user_are_listed(reviewers: _Reviewers) -> None:
    """A SelfSubjectRulesReview lists what everybody has, and what bindings give."""
    path = f"{_AUTHORIZATION}/selfsubjectrulesreviews"
    found = reviewers.review("alice", path, {"spec": {"namespace": "ns1"}})["status"]

    recorded = recordings("auth")["SelfSubjectRulesReview"].response["body"]["status"]
    assert found["nonResourceRules"] == recorded["nonResourceRules"]
    assert found["resourceRules"] == recorded["resourceRules"][:2]  # the third is a binding's
    assert reviewers.review("alice", path, {"spec": {}})["code"] == 422
