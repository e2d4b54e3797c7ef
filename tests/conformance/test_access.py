"""Who may do what: 401, 403, and the RBAC objects that grant."""

from __future__ import annotations

import pytest

from tests.conformance.cluster import Cluster, Collection
from tests.conformance.shapes import widget
from tests.conformance.wire import Wire, until

UNAUTHORIZED = (
    '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    '"message":"Unauthorized","reason":"Unauthorized","code":401}\n'
)


def test_a_wrong_token_is_unauthorized(cluster: Cluster, widgets: Collection) -> None:
    """401 everywhere, whatever the path, without WWW-Authenticate."""
    for path in (widgets.path, "/version", "/apis", "/nosuch"):
        answer = cluster.impostor.get(path)
        assert (answer.status, answer.text) == (401, UNAUTHORIZED)
        assert "WWW-Authenticate" not in answer.headers


def test_nobody_is_forbidden_not_unauthorized(cluster: Cluster, widgets: Collection) -> None:
    """Without a token, or with another scheme, the user is system:anonymous."""
    for headers in ({}, {"Authorization": "Basic YTpi"}):
        answer = cluster.anonymous.get(widgets.path, headers=headers)
        assert answer.status == 403
        assert answer.json["message"].startswith(
            'widgets.ex.io is forbidden: User "system:anonymous" cannot list resource "widgets"'
        )


def test_nobody_may_ask_for_version_and_health(cluster: Cluster) -> None:
    """/version and the probes are open; discovery is not."""
    assert cluster.anonymous.get("/version").status == 200
    assert cluster.anonymous.get("/healthz").text == "ok"
    refused = cluster.anonymous.get("/apis")
    assert refused.status == 403
    assert refused.json["message"] == ('forbidden: User "system:anonymous" cannot get path "/apis"')
    assert refused.json["details"] == {}


@pytest.mark.parametrize(
    ("method", "tail", "message"),
    [
        ("GET", "", 'widgets.ex.io is forbidden: User "alice" cannot list resource "widgets"'),
        (
            "GET",
            "?watch=1",
            'widgets.ex.io is forbidden: User "alice" cannot watch resource "widgets"',
        ),
        (
            "GET",
            "?watch=1&fieldSelector=metadata.name%3Da",
            'widgets.ex.io "a" is forbidden: User "alice" cannot watch resource "widgets"',
        ),
        ("GET", "/a", 'widgets.ex.io "a" is forbidden: User "alice" cannot get resource "widgets"'),
        (
            "GET",
            "/a/status",
            'widgets.ex.io "a" is forbidden: User "alice" cannot get resource "widgets/status"',
        ),
        ("POST", "", 'widgets.ex.io is forbidden: User "alice" cannot create resource "widgets"'),
        (
            "PUT",
            "/a",
            'widgets.ex.io "a" is forbidden: User "alice" cannot update resource "widgets"',
        ),
        (
            "PATCH",
            "/a",
            'widgets.ex.io "a" is forbidden: User "alice" cannot patch resource "widgets"',
        ),
        (
            "DELETE",
            "/a",
            'widgets.ex.io "a" is forbidden: User "alice" cannot delete resource "widgets"',
        ),
        (
            "DELETE",
            "",
            'widgets.ex.io is forbidden: User "alice" cannot deletecollection resource "widgets"',
        ),
    ],
)
def test_what_is_not_granted_is_forbidden(
    cluster: Cluster, widgets: Collection, method: str, tail: str, message: str
) -> None:
    """The 403 names user, verb, resource, group and namespace."""
    answer = cluster.alice.send(method, widgets.path + tail)
    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
    where = f'in API group "ex.io" in the namespace "{widgets.namespace}"'
    assert answer.json["message"] == f"{message} {where}"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    named = {"name": "a"} if '"a" is' in message else {}
    assert answer.json["details"] == {**named, "group": "ex.io", "kind": "widgets"}


def test_the_cluster_scope_is_named(cluster: Cluster) -> None:
    """Across namespaces the message says so."""
    answer = cluster.alice.get("/apis/ex.io/v1/widgets")
    assert answer.json["message"].endswith('in API group "ex.io" at the cluster scope')


def test_forbidden_comes_before_not_found(cluster: Cluster) -> None:
    """Who may not look is not told what is missing."""
    answer = cluster.alice.get("/apis/nope.io/v1/things")
    assert (answer.status, answer.json["details"]) == (
        403,
        {"group": "nope.io", "kind": "things"},
    )


def test_paths_that_are_no_resources_are_guarded_too(cluster: Cluster) -> None:
    """A path is named by itself."""
    answer = cluster.alice.get("/metrics")
    assert answer.json["message"] == 'forbidden: User "alice" cannot get path "/metrics"'


def test_every_user_may_discover(cluster: Cluster) -> None:
    """Without any role, discovery is readable."""
    assert cluster.alice.get("/apis/ex.io/v1").status == 200
    assert cluster.alice.get("/apis").status == 200


def _grant(api: Wire, widgets: Collection, *verbs: str, names: tuple[str, ...] = ()) -> str:
    """Grant alice verbs on widgets of the namespace; the path of the binding."""
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{widgets.namespace}"
    rule = {"apiGroups": ["ex.io"], "resources": ["widgets"], "verbs": list(verbs)}
    if names:
        rule["resourceNames"] = list(names)
    group = "rbac.authorization.k8s.io"
    role = {
        "apiVersion": f"{group}/v1",
        "kind": "Role",
        "metadata": {"name": "some"},
        "rules": [rule],
    }
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "some"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "alice"}],
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "some"},
    }
    assert api.post(f"{rbac}/roles", role).status == 201
    assert api.post(f"{rbac}/rolebindings", binding).status == 201
    return f"{rbac}/rolebindings/some"


def test_a_role_grants_its_verbs_in_its_namespace(
    api: Wire, cluster: Cluster, widgets: Collection
) -> None:
    """List is granted; watch, get and other namespaces are not."""
    _grant(api, widgets, "list")
    until(lambda: cluster.alice.get(widgets.path).status == 200)
    assert cluster.alice.get(widgets.path, {"watch": "1"}).status == 403
    assert cluster.alice.get(widgets.at("a")).status == 403
    assert cluster.alice.get("/apis/ex.io/v1/widgets").status == 403


def test_a_role_can_be_for_one_name(api: Wire, cluster: Cluster, widgets: Collection) -> None:
    """ResourceNames lets one object through, and a list that selects its name."""
    widgets.fill("a", "b")
    _grant(api, widgets, "get", "list", names=("a",))
    until(lambda: cluster.alice.get(widgets.at("a")).status == 200)
    assert cluster.alice.get(widgets.at("b")).status == 403
    assert cluster.alice.get(widgets.path).status == 403
    assert cluster.alice.get(widgets.path, {"fieldSelector": "metadata.name=a"}).names == ["a"]


def test_revoking_ends_no_watch(api: Wire, cluster: Cluster, widgets: Collection) -> None:
    """A running watch goes on; the next request is forbidden."""
    binding = _grant(api, widgets, "list", "watch")
    until(lambda: cluster.alice.get(widgets.path).status == 200)
    with cluster.alice.watch(widgets.path, {"resourceVersion": widgets.version()}) as watch:
        api.delete(binding)
        until(lambda: cluster.alice.get(widgets.path).status == 403)
        widgets.create(widget("a"))
        assert watch.take(1) == [("ADDED", "a")]


@pytest.mark.parametrize(("who", "allowed"), [("admin", True), ("alice", False)])
def test_a_review_says_what_is_allowed(cluster: Cluster, who: str, allowed: bool) -> None:
    """SelfSubjectAccessReview answers for whoever asks."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "list", "group": "ex.io", "resource": "widgets"}},
    }
    wire = cluster.admin if who == "admin" else cluster.alice
    answer = wire.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    assert (answer.status, answer.json["status"]["allowed"]) == (201, allowed)


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        (
            "authorization.k8s.io/v1/subjectaccessreviews",
            {"spec": {"groups": 5}},
            "number into Go struct field SubjectAccessReviewSpec.spec.groups of type []string",
        ),
        (
            "authorization.k8s.io/v1/subjectaccessreviews",
            {"spec": {"extra": {"a": 5}}},
            "number into Go struct field SubjectAccessReviewSpec.spec.extra of type v1.ExtraValue",
        ),
        (
            "authorization.k8s.io/v1/selfsubjectrulesreviews",
            {"spec": {"namespace": 5}},
            "number into Go struct field SelfSubjectRulesReviewSpec.spec.namespace of type string",
        ),
        (
            "authentication.k8s.io/v1/tokenreviews",
            {"spec": {"token": 5}},
            "number into Go struct field TokenReviewSpec.spec.token of type string",
        ),
        (
            "rbac.authorization.k8s.io/v1/clusterroles",
            {"rules": [{"verbs": "get"}]},
            "string into Go struct field PolicyRule.rules.verbs of type []string",
        ),
        (
            "rbac.authorization.k8s.io/v1/clusterrolebindings",
            {"subjects": ["u"]},
            "string into Go struct field ClusterRoleBinding.subjects of type v1.Subject",
        ),
    ],
)
def test_questions_and_rules_of_wrong_types_are_refused(
    api: Wire, path: str, body: dict[str, object], why: str
) -> None:
    """In the words of Go's decoder."""
    answer = api.post(f"/apis/{path}", {"metadata": {"name": "wrong"}, **body})
    assert answer.status == 400
    assert answer.json["message"].endswith(f": json: cannot unmarshal {why}")


def test_a_binding_says_the_groups_of_its_subjects_and_its_role(api: Wire, namespace: str) -> None:
    """Users and groups, and roles, are of RBAC's own."""
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    subjects = [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}]
    body = {"metadata": {"name": "b"}, "subjects": subjects}
    made = api.post(f"{path}/rolebindings", {**body, "roleRef": {"kind": "Role", "name": "r"}})
    own = {"apiGroup": "rbac.authorization.k8s.io"}
    assert made.json["subjects"] == [{"kind": "User", **own, "name": "u"}, subjects[1]]
    assert made.json["roleRef"] == {**own, "kind": "Role", "name": "r"}
    assert api.post(f"{path}/roles", {"metadata": {"name": "r"}}).json["rules"] is None


def test_a_review_of_no_token_is_refused(api: Wire) -> None:
    """There is nothing to look at."""
    answer = api.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {}})
    assert (answer.status, answer.json["message"]) == (
        400,
        "token is required for TokenReview in authentication",
    )
