"""Rights from RBAC objects: roles and bindings as they are in the cluster now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dyninformer.testing.api.access import (
    AUTHENTICATED,
    UNAUTHENTICATED,
    Access,
    Decision,
    User,
    forbidden,
    path_matches,
    resource_matches,
)
from dyninformer.testing.api.request_info import RequestInfo
from dyninformer.testing.cluster.log import GroupResource, Key, Log
from dyninformer.types import Object

_GROUP = "rbac.authorization.k8s.io"
_ROLES = GroupResource(_GROUP, "roles")
_CLUSTER_ROLES = GroupResource(_GROUP, "clusterroles")
_BINDINGS = GroupResource(_GROUP, "rolebindings")
_CLUSTER_BINDINGS = GroupResource(_GROUP, "clusterrolebindings")
_SERVICE_ACCOUNT = "system:serviceaccount:"

PUBLIC_PATHS = ("/healthz", "/livez", "/readyz", "/version", "/version/")
DISCOVERY_PATHS = (
    "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*",
    "/readyz", "/version", "/version/",
)  # fmt: skip
BASIC_USER: tuple[Object, ...] = (
    {
        "verbs": ["create"], "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    },
    {
        "verbs": ["create"], "apiGroups": ["authentication.k8s.io"],
        "resources": ["selfsubjectreviews"],
    },
)  # fmt: skip
"""The rights that every real cluster is born with, so that nobody has to create them."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One rule of a role, and the binding that gives it."""

    rule: Object
    reason: str


class Rbac:
    """Evaluates the RBAC objects of the log that ``log`` gives, anew for each question.

    A change of a role or binding therefore acts on the next request, and a running
    watch is not ended by it, as on the real server.
    """

    def __init__(self, log: Callable[[], Log]) -> None:
        self._log = log

    def authorize(self, user: User, info: RequestInfo) -> Decision:
        """Allowed by the first rule that fits."""
        for grant in self.grants(user, info.namespace):
            if _fits(grant.rule, info):
                return Decision(allowed=True, reason=grant.reason)
        return Decision(allowed=False)

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """What ``user`` was given: at the cluster scope, and in ``namespace`` if it is named."""
        yield from _born_with(user)
        for binding in self._objects(_CLUSTER_BINDINGS):
            yield from self._granted(user, binding, "ClusterRoleBinding", "")
        if namespace:
            for binding in self._objects(_BINDINGS, namespace):
                yield from self._granted(user, binding, "RoleBinding", namespace)

    def _granted(self, user: User, binding: Object, kind: str, namespace: str) -> Iterator[Grant]:
        subject = next(
            (s for s in binding.get("subjects") or () if s and _is(s, user, namespace)), None
        )
        if subject is None:
            return
        ref = binding.get("roleRef") or {}
        role = self._role(ref, namespace)
        name = binding["metadata"]["name"]
        where = f"{name}/{namespace}" if namespace else name
        reason = (
            f'RBAC: allowed by {kind} "{where}" of {ref.get("kind")} "{ref.get("name")}" '
            f'to {subject.get("kind")} "{_subject_name(subject)}"'
        )
        for rule in (role or {}).get("rules") or ():
            yield Grant(rule or {}, reason)

    def _role(self, ref: Object, namespace: str) -> Object | None:
        name = ref.get("name") or ""
        if ref.get("kind") == "Role":
            found = self._log().get(_ROLES, Key(namespace, name))
        else:
            found = self._log().get(_CLUSTER_ROLES, Key("", name))
        return found.object if found else None

    def _objects(self, collection: GroupResource, namespace: str = "") -> Iterator[Object]:
        return (version.object for version in self._log().items(collection, namespace))


class Rights:
    """What a user may do in the end: by declared rules, else by RBAC objects."""

    def __init__(self, access: Access, rbac: Rbac) -> None:
        self._access = access
        self._rbac = rbac

    def decide(self, user: User, info: RequestInfo) -> Decision:
        """Whether ``user`` may do what ``info`` says, and by what."""
        return self._access.decide(user, info) or self._rbac.authorize(user, info)

    def check(self, user: User, info: RequestInfo) -> None:
        """Raise the 403 that says what is forbidden, unless it is allowed."""
        decision = self.decide(user, info)
        if not decision.allowed:
            raise forbidden(user, info, decision)


def _born_with(user: User) -> Iterator[Grant]:
    known = AUTHENTICATED in user.groups
    public = _bootstrap("system:public-info-viewer", AUTHENTICATED if known else UNAUTHENTICATED)
    yield Grant({"verbs": ["get"], "nonResourceURLs": list(PUBLIC_PATHS)}, public)
    if known:
        discovery = _bootstrap("system:discovery", AUTHENTICATED)
        yield Grant({"verbs": ["get"], "nonResourceURLs": list(DISCOVERY_PATHS)}, discovery)
        for rule in BASIC_USER:
            yield Grant(rule, _bootstrap("system:basic-user", AUTHENTICATED))


def _bootstrap(role: str, group: str) -> str:
    to = f'to Group "{group}"'
    return f'RBAC: allowed by ClusterRoleBinding "{role}" of ClusterRole "{role}" {to}'


def _fits(rule: Object, info: RequestInfo) -> bool:
    verbs = rule.get("verbs") or ()
    if "*" not in verbs and info.verb not in verbs:
        return False
    if not info.is_resource:
        return any(path_matches(url, info.path) for url in rule.get("nonResourceURLs") or ())
    groups = rule.get("apiGroups") or ()
    names = rule.get("resourceNames") or ()
    return (
        ("*" in groups or info.group in groups)
        and resource_matches(rule.get("resources") or (), info)
        and (not names or info.authorised_name in names)
    )


def _is(subject: Object, user: User, namespace: str) -> bool:
    kind, name = subject.get("kind"), subject.get("name")
    if kind == "User":
        return name in ("*", user.name)
    if kind == "Group":
        return name in user.groups
    if kind == "ServiceAccount":
        home = subject.get("namespace") or namespace
        return user.name == f"{_SERVICE_ACCOUNT}{home}:{name}"
    return False


def _subject_name(subject: Object) -> str:
    if subject.get("kind") == "ServiceAccount":
        return f"{subject.get('name')}/{subject.get('namespace')}"
    return str(subject.get("name"))
