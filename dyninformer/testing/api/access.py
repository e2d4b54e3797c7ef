"""Users and their rights: tokens, declared rules, RBAC objects, impersonation, reviews.

`Access` has the users and the declared rules, `Rbac` reads roles and bindings, `Rights` is what
both give in the end. `Reviews` answers questions about them, which clients ask by creating objects.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypedDict, Unpack, cast

from dyninformer.checked import (
    checked,
    checked_name,
    checked_or_none,
    checked_text,
    checked_texts,
    wrong,
)
from dyninformer.testing.cluster.log import GroupResource, Key, Log
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.strategies import RBAC
from dyninformer.testing.messages import Request, RequestInfo, read_request_info
from dyninformer.testing.status import ApiError, bad_request, cause
from dyninformer.types import Object

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"


@dataclass(frozen=True, slots=True)
class User:
    """A user. ``groups`` is complete: it holds system:authenticated or its opposite.

    >>> access = Access()
    >>> token = access.add_user("alice", groups=["devs"])
    >>> access.user_of(token).groups
    ('devs', 'system:authenticated')
    """

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))
_DENIED = "denied by a declared rule"
UNSECURED = User("system:unsecured", (MASTERS, AUTHENTICATED))
"""The user of requests without TLS and without a token: kubectl sends no token over plain HTTP."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether it is allowed, and by what.

    Not for import.
    """

    allowed: bool
    reason: str = ""


OneOrMore = str | Iterable[str]


class What(TypedDict, total=False):
    """What a rule is about, as in `Rule`; one text stands for a list of one.

    Not for import.
    """

    verbs: OneOrMore
    groups: OneOrMore
    resources: OneOrMore
    namespaces: OneOrMore
    names: OneOrMore
    paths: OneOrMore


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One declared rule; an empty tuple means any.

    ``resources`` are named as in RBAC: ``widgets``, ``widgets/status``, ``*/scale``.
    A rule with ``namespaces`` does not reach requests at the cluster scope, one with
    ``names`` only requests for those names.

    >>> Access().deny("alice", verbs="list", resources="widgets", groups="ex.io").verbs
    ('list',)
    """

    allows: bool
    user: str
    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    reason: str = ""
    """What a refusal says besides who may not do what."""
    paths: tuple[str, ...] = ()
    """Paths other than resources, ``/metrics`` or ``/apis/*``; such a rule reaches no resource."""

    def matches(self, user: User, info: RequestInfo) -> bool:
        """Whether the rule speaks of this user and request."""
        if self.user not in ("*", user.name, *(f"group:{group}" for group in user.groups)):
            return False
        if not _has(self.verbs, info.verb):
            return False
        if self.paths or not info.is_resource:
            about_resources = self.groups or self.resources or self.namespaces or self.names
            return (
                not info.is_resource
                and not about_resources
                and (not self.paths or any(_path_matches(path, info.path) for path in self.paths))
            )
        return (
            _has(self.groups, info.group)
            and (not self.resources or _resource_matches(self.resources, info))
            and _has(self.namespaces, info.namespace)
            and _has(self.names, info.authorised_name)
        )


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request, what it is about, and whose token it bears: read once, for log, faults and API.

    Not for import.
    """

    request: Request
    info: RequestInfo
    user: User | None
    """None if the token is unknown."""

    @property
    def user_name(self) -> str:
        """The user's name; "" if the token is unknown."""
        return "" if self.user is None else self.user.name

    def authenticated(self) -> User:
        """The user; 401 if the token is unknown."""
        if self.user is None:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return self.user


class Access:
    """The users of a server and what they may do.

    The rules declared here are asked first, the newest before the others, and the first
    that speaks of the request decides, for every user. Then members of system:masters may
    do all; everybody else has what the RBAC objects of the cluster give.

    >>> access = Access()
    >>> token = access.add_user("alice", groups=["devs"])
    >>> rule = access.deny("alice", verbs="list", resources="widgets", groups="ex.io")
    >>> access.remove(rule)
    """

    def __init__(self) -> None:
        self.anonymous = ANONYMOUS
        """The user that a request without a bearer token comes from."""
        self._users: dict[str, User] = {}
        self._rules: list[Rule] = []

    def __repr__(self) -> str:
        names = sorted(user.name for user in self._users.values())
        return f"<Access users={names} rules={len(self._rules)}>"

    def add_user(
        self, name: str, *, groups: Iterable[str] = (), token: str | None = None, uid: str = ""
    ) -> str:
        """Make ``token`` (a fresh one by default) that of user ``name``, and return it."""
        checked_name("name", name, "the name of a user")
        if isinstance(groups, str):
            raise wrong("groups", groups, "several, in a list")
        groups = checked_texts("groups", groups, "several, in a list")
        checked_or_none("token", token, str, "text, or None for a fresh one")
        checked_text("uid", uid)
        token = token or secrets.token_urlsafe(24)
        self._users[token] = User(name, (*groups, AUTHENTICATED), uid or name)
        return token

    def remove_token(self, token: str) -> None:
        """From now on ``token`` is answered 401; unknown tokens are ignored."""
        self._users.pop(checked_text("a token", token, "what add_user returned"), None)

    def allow(self, user: str, **what: Unpack[What]) -> Rule:
        """Let ``user`` ("*" for all, "group:devs" for a group) do ``what``."""
        return self._declare(True, user, what)

    def deny(self, user: str, *, reason: str = "", **what: Unpack[What]) -> Rule:
        """Forbid ``user`` ``what``, members of system:masters too; the refusal says the reason."""
        return self._declare(False, user, what, reason)

    def remove(self, rule: Rule) -> None:
        """Take back what `allow` or `deny` returned; idempotent."""
        checked("a rule", rule, Rule, "what allow or deny returned")
        if rule in self._rules:
            self._rules.remove(rule)

    def clear(self) -> None:
        """Take back every declared rule; users keep their tokens."""
        self._rules.clear()

    def receive(self, request: Request) -> ReceivedRequest:
        """Read what ``request`` is about and whose it is; without a token it is `anonymous`'s."""
        scheme, _, token = request.headers.get("authorization", "").strip().partition(" ")
        token = token.strip()
        bears = scheme.lower() == "bearer" and token
        user = self._users.get(token) if bears else self.anonymous
        return ReceivedRequest(request, read_request_info(request), user)

    def user_of(self, token: str) -> User | None:
        """The user whose token this is."""
        return self._users.get(token)

    def decide(self, user: User, info: RequestInfo) -> Decision | None:
        """What rules and system:masters say; None if they say nothing of it."""
        for rule in reversed(self._rules):
            if rule.matches(user, info):
                return Decision(rule.allows, "" if rule.allows else rule.reason or _DENIED)
        return Decision(allowed=True) if MASTERS in user.groups else None

    def _declare(self, allows: bool, user: str, what: What, reason: str = "") -> Rule:
        checked_name("user", user, "a name, '*' for all, or 'group:' and the name of a group")
        checked_text("reason", reason)
        given = cast("dict[str, OneOrMore]", what)
        if unknown := given.keys() - What.__annotations__.keys():
            known = ", ".join(What.__annotations__)
            raise TypeError(f"a rule has no {unknown.pop()!r}: give some of {known}")
        named = {name: _tuple(name, value) for name, value in given.items()}
        rule = Rule(allows, user, **named, reason=reason)
        self._rules.append(rule)
        return rule


def _forbidden(user: User, info: RequestInfo, decision: Decision | None = None) -> ApiError:
    """The 403 as the real server words it, with the reason if the decision has one."""
    why = "" if decision is None or decision.reason in {"", _DENIED} else f": {decision.reason}"
    if not info.is_resource:
        message = f'forbidden: User "{user.name}" cannot {info.verb} path "{info.path}"{why}'
        return _refusal(message, {})
    full = f"{info.resource}.{info.group}" if info.group else info.resource
    what = f'{full} "{info.authorised_name}"' if info.authorised_name else full
    where = f'in the namespace "{info.namespace}"' if info.namespace else "at the cluster scope"
    message = (
        f'{what} is forbidden: User "{user.name}" cannot {info.verb} resource '
        f'"{info.authorised_resource}" in API group "{info.group}" {where}{why}'
    )
    details = {"name": info.authorised_name, "group": info.group, "kind": info.resource}
    return _refusal(message, {key: value for key, value in details.items() if value})


def _resource_matches(resources: Iterable[str], info: RequestInfo) -> bool:
    """RBAC's rule: ``*``, the resource with its subresource, or any resource's subresource."""
    wanted = {"*", info.authorised_resource}
    if info.subresource:
        wanted.add(f"*/{info.subresource}")
    return not wanted.isdisjoint(resources)


def _path_matches(pattern: str, path: str) -> bool:
    """RBAC's rule for paths: ``*``, the path itself, or a prefix that ends in ``*``."""
    if pattern.endswith("*"):
        return path.startswith(pattern[:-1])
    return pattern == path


def _refusal(message: str, details: dict[str, str]) -> ApiError:
    headers = (("X-Content-Type-Options", "nosniff"),)
    return ApiError(403, "Forbidden", message, details=dict(details), headers=headers)


def _has(allowed: tuple[str, ...], value: str) -> bool:
    return not allowed or "*" in allowed or value in allowed


def _tuple(what: str, names: OneOrMore) -> tuple[str, ...]:
    return checked_texts(what, names, "one text, or several")


# -- rights from RBAC objects: roles and bindings as they are in the cluster now ---------------

_ROLES = GroupResource(RBAC, "roles")
_CLUSTER_ROLES = GroupResource(RBAC, "clusterroles")
_BINDINGS = GroupResource(RBAC, "rolebindings")
_CLUSTER_BINDINGS = GroupResource(RBAC, "clusterrolebindings")
_SERVICE_ACCOUNT = "system:serviceaccount:"

_PUBLIC_PATHS = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_DISCOVERY_PATHS = (
    *("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*"),
    *("/readyz", "/version", "/version/"),
)
_BASIC_USER: tuple[Object, ...] = (
    {
        "verbs": ["create"],
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    },
    {
        "verbs": ["create"],
        "apiGroups": ["authentication.k8s.io"],
        "resources": ["selfsubjectreviews"],
    },
)
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
            raise _forbidden(user, info, decision)


def _born_with(user: User) -> Iterator[Grant]:
    known = AUTHENTICATED in user.groups
    public = _bootstrap("system:public-info-viewer", AUTHENTICATED if known else UNAUTHENTICATED)
    yield Grant({"verbs": ["get"], "nonResourceURLs": list(_PUBLIC_PATHS)}, public)
    if known:
        discovery = _bootstrap("system:discovery", AUTHENTICATED)
        yield Grant({"verbs": ["get"], "nonResourceURLs": list(_DISCOVERY_PATHS)}, discovery)
        for rule in _BASIC_USER:
            yield Grant(rule, _bootstrap("system:basic-user", AUTHENTICATED))


def _bootstrap(role: str, group: str) -> str:
    to = f'to Group "{group}"'
    return f'RBAC: allowed by ClusterRoleBinding "{role}" of ClusterRole "{role}" {to}'


def _fits(rule: Object, info: RequestInfo) -> bool:
    verbs = rule.get("verbs") or ()
    if "*" not in verbs and info.verb not in verbs:
        return False
    if not info.is_resource:
        return any(_path_matches(url, info.path) for url in rule.get("nonResourceURLs") or ())
    groups = rule.get("apiGroups") or ()
    names = rule.get("resourceNames") or ()
    return (
        ("*" in groups or info.group in groups)
        and _resource_matches(rule.get("resources") or (), info)
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


# -- acting as somebody else: kubectl --as -----------------------------------------------------


def acting_user(received: ReceivedRequest, rights: Rights) -> User:
    """The user that the Impersonate headers name, or else the request's own; 401 if unknown.

    Raises the 403 of a user who may not act as that user or with those groups; it names
    the finer right that 1.36 asks for last, to act so in this one request.
    """
    user, headers = received.authenticated(), received.request.headers
    name = headers.get("impersonate-user", "")
    named = headers.get("impersonate-group", "")  # one in each of the lines that were sent
    groups = tuple(group for group in (each.strip() for each in named.split("\n")) if group)
    if not name:
        if groups:
            raise bad_request("requested groups without impersonating a user name")
        return user
    asked = [_subject(name), *(_impersonate("groups", group) for group in groups)]
    if not all(rights.decide(user, each).allowed for each in asked):
        verb = f"impersonate-on:user-info:{received.info.verb}"
        raise _forbidden(user, replace(received.info, verb=verb))
    if name.startswith(_SERVICE_ACCOUNT) and not groups:
        namespace = name.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    known = AUTHENTICATED if name != ANONYMOUS.name else UNAUTHENTICATED
    return User(name, (*groups, *(() if known in groups else (known,))))


def _subject(name: str) -> RequestInfo:
    if name.startswith(_SERVICE_ACCOUNT):
        namespace, _, account = name.removeprefix(_SERVICE_ACCOUNT).partition(":")
        return _impersonate("serviceaccounts", account, namespace)
    return _impersonate("users", name)


def _impersonate(resource: str, name: str, namespace: str = "") -> RequestInfo:
    return RequestInfo(
        path="",
        verb="impersonate",
        is_resource=True,
        version="v1",
        resource=resource,
        namespace=namespace,
        name=name,
    )


# -- reviews: questions about users and rights that are answered and kept nowhere -------------

_AUTHENTICATION = "authentication.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Review:
    """One kind of review: a resource that can only be created."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = False

    @property
    def resource(self) -> Resource:
        """As the bodies of requests are read for it."""
        return Resource(
            self.group, self.version, self.plural, self.kind, self.namespaced, builtin=True
        )


REVIEWS = (
    Review(_AUTHENTICATION, "v1", "selfsubjectreviews", "SelfSubjectReview"),
    Review(_AUTHENTICATION, "v1", "tokenreviews", "TokenReview"),
    Review(_AUTHORIZATION, "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", True),
    Review(_AUTHORIZATION, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    Review(_AUTHORIZATION, "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    Review(_AUTHORIZATION, "v1", "subjectaccessreviews", "SubjectAccessReview"),
)


def find_review(info: RequestInfo) -> Review | None:
    """The review behind a path, None if it is none."""
    asked = (info.group, info.version, info.resource)
    found = (each for each in REVIEWS if (each.group, each.version, each.plural) == asked)
    return next(found, None)


class Reviews:
    """Answers reviews from the users and rules of a server."""

    def __init__(self, access: Access, rbac: Rbac, timestamp: Callable[[], str]) -> None:
        self._access = access
        self._rbac = rbac
        self._rights = Rights(access, rbac)
        self._timestamp = timestamp
        self._answers: dict[str, Callable[[User, Object], Object]] = {
            "SelfSubjectReview": self._who,
            "TokenReview": self._token,
            "SelfSubjectAccessReview": self._self_access,
            "SubjectAccessReview": self._access_of_other,
            "LocalSubjectAccessReview": self._access_of_other,
            "SelfSubjectRulesReview": self._rules,
        }

    def answer(self, review: Review, user: User, body: Object) -> Object:
        """The review with its status filled in."""
        spec = body.get("spec") or {}
        head = {"kind": review.kind, "apiVersion": f"{review.group}/{review.version}"}
        return {**head, "metadata": {}, **self._answers[review.kind](user, spec)}

    def _who(self, user: User, spec: Object) -> Object:  # noqa: ARG002  it has none
        metadata = {"creationTimestamp": self._timestamp()}
        return {"metadata": metadata, "status": {"userInfo": _user_info(user)}}

    def _token(self, user: User, spec: Object) -> Object:  # noqa: ARG002  whoever asks
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        found = self._access.user_of(spec["token"])
        if found is None:
            return {"spec": spec, "status": {"user": {}, "error": "[invalid bearer token]"}}
        return {"spec": spec, "status": {"authenticated": True, "user": _user_info(found)}}

    def _self_access(self, user: User, spec: Object) -> Object:
        return {"spec": spec, "status": self._decision(user, spec)}

    def _access_of_other(self, user: User, spec: Object) -> Object:  # noqa: ARG002  as above
        other = User(spec.get("user", ""), tuple(spec.get("groups", ())), spec.get("uid", ""))
        return {"spec": spec, "status": self._decision(other, spec)}

    def _decision(self, user: User, spec: Object) -> Object:
        decision = self._rights.decide(user, _asked(spec))
        reason = {"reason": decision.reason} if decision.reason else {}
        return {"allowed": decision.allowed, **reason}

    def _rules(self, user: User, spec: Object) -> Object:
        namespace = spec.get("namespace", "")
        if not namespace:
            raise _refused("spec.namespace", "Required value", "FieldValueRequired")
        rules = [grant.rule for grant in self._rbac.grants(user, namespace)]
        return {
            "spec": {},
            "status": {
                "resourceRules": [rule for rule in rules if not rule.get("nonResourceURLs")],
                "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
                "incomplete": False,
            },
        }


def _asked(spec: Object) -> RequestInfo:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (path is None):
        what = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise _refused("spec.resourceAttributes", f"Invalid value: null: {what}")
    if resource is None:
        about = path or {}
        return RequestInfo(path=about.get("path", ""), verb=about.get("verb", ""))
    names = ("group", "version", "resource", "subresource", "namespace", "name")
    about = {name: resource.get(name, "") for name in names}
    return RequestInfo(path="", verb=resource.get("verb", ""), is_resource=True, **about)


def _user_info(user: User) -> Object:
    uid = {"uid": user.uid} if user.uid else {}
    return {"username": user.name, **uid, "groups": list(user.groups)}


def _refused(field: str, message: str, reason: str = "FieldValueInvalid") -> ApiError:
    """A 422 that, like the real server's, does not know the kind of what it refuses."""
    details = {"group": _AUTHORIZATION, "causes": [cause(reason, message, field)]}
    what = f'.{_AUTHORIZATION} "" is invalid: {field}: {message}'
    return ApiError(422, "Invalid", what, details=details)
