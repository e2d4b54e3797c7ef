"""Tokens, declared rules and RBAC objects."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer.testing.api.access import ANONYMOUS, MASTERS, Access, User
from dyninformer.testing.api.rbac import Rbac, Rights
from dyninformer.testing.api.request_info import RequestInfo, read_request_info
from dyninformer.testing.cluster.log import GroupResource, Key, Log
from dyninformer.testing.messages import Request
from dyninformer.testing.status import ApiError

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
        self.alice = self.access.authenticate(_bearing(f"Bearer {token}"))
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

        assert access.authenticate(_bearing(f"bearer  {token}")) == User(
            "alice", ("devs", "system:authenticated"), "alice"
        )

    @pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer ", "Basic YTpi"])
    def test_whoever_bears_no_token_is_anonymous(self, authorization: str) -> None:
        """Without a bearer token the user is anonymous, not refused."""
        assert Access().authenticate(_bearing(authorization)) is ANONYMOUS

    def test_a_wrong_token_is_a_401(self) -> None:
        """A token that nobody has, or has no more, is a 401."""
        access = Access()
        token = access.add_user("alice")
        access.remove_token(token)

        for wrong in ("x", token):
            with pytest.raises(ApiError, match="Unauthorized") as refused:
                access.authenticate(_bearing(f"Bearer {wrong}"))
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
