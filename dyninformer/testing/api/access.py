"""Who asks, and whether they may: bearer tokens, declared rules, and RBAC objects."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypedDict, Unpack, cast

from dyninformer.testing.api.request_info import RequestInfo
from dyninformer.testing.messages import Request
from dyninformer.testing.status import ApiError

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"


@dataclass(frozen=True, slots=True)
class User:
    """Who asks. ``groups`` is complete: it holds system:authenticated or its opposite.

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
"""Whoever comes without TLS and without a token: kubectl sends no token over plain HTTP."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether it is allowed, and by what.

    Not for import.
    """

    allowed: bool
    reason: str = ""


Names = str | Iterable[str]


class What(TypedDict, total=False):
    """What a rule is about, as in `Rule`; one text stands for a list of one.

    Not for import.
    """

    verbs: Names
    groups: Names
    resources: Names
    namespaces: Names
    names: Names
    paths: Names


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
    """Paths that are no resources, ``/metrics`` or ``/apis/*``; such a rule reaches no resource."""

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
                and (not self.paths or any(path_matches(path, info.path) for path in self.paths))
            )
        return (
            _has(self.groups, info.group)
            and (not self.resources or resource_matches(self.resources, info))
            and _has(self.namespaces, info.namespace)
            and _has(self.names, info.authorised_name)
        )


class Access:
    """The users of a server and what they may do.

    The rules declared here are asked first, the newest before the others, and the first
    that speaks of the request decides, whoever asks. Then members of system:masters may
    do all; everybody else has what the RBAC objects of the cluster give.

    >>> access = Access()
    >>> token = access.add_user("alice", groups=["devs"])
    >>> rule = access.deny("alice", verbs="list", resources="widgets", groups="ex.io")
    >>> access.remove(rule)
    """

    def __init__(self) -> None:
        self.anonymous = ANONYMOUS
        """Who a request without a bearer token comes from."""
        self._users: dict[str, User] = {}
        self._rules: list[Rule] = []

    def __repr__(self) -> str:
        names = sorted(user.name for user in self._users.values())
        return f"<Access users={names} rules={len(self._rules)}>"

    def add_user(
        self, name: str, *, groups: Iterable[str] = (), token: str | None = None, uid: str = ""
    ) -> str:
        """Make ``token`` (a fresh one by default) that of user ``name``, and return it."""
        token = token or secrets.token_urlsafe(24)
        self._users[token] = User(name, (*groups, AUTHENTICATED), uid or name)
        return token

    def remove_token(self, token: str) -> None:
        """From now on ``token`` is answered 401; unknown tokens are ignored."""
        self._users.pop(token, None)

    def allow(self, user: str, **what: Unpack[What]) -> Rule:
        """Let ``user`` ("*" for all, "group:devs" for a group) do ``what``."""
        return self._declare(True, user, what)

    def deny(self, user: str, *, reason: str = "", **what: Unpack[What]) -> Rule:
        """Forbid ``user`` ``what``, members of system:masters too; the refusal says the reason."""
        return self._declare(False, user, what, reason)

    def remove(self, rule: Rule) -> None:
        """Take back what `allow` or `deny` returned; idempotent."""
        if rule in self._rules:
            self._rules.remove(rule)

    def clear(self) -> None:
        """Take back every declared rule; users keep their tokens."""
        self._rules.clear()

    def authenticate(self, request: Request) -> User:
        """The user whose token the request bears; 401 if nobody's, anonymous without one."""
        scheme, _, token = request.headers.get("authorization", "").strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return self.anonymous
        user = self._users.get(token)
        if user is None:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return user

    def user_of(self, token: str) -> User | None:
        """Whose token this is."""
        return self._users.get(token)

    def decide(self, user: User, info: RequestInfo) -> Decision | None:
        """What rules and system:masters say; None if they say nothing of it."""
        for rule in reversed(self._rules):
            if rule.matches(user, info):
                return Decision(rule.allows, "" if rule.allows else rule.reason or _DENIED)
        return Decision(allowed=True) if MASTERS in user.groups else None

    def _declare(self, allows: bool, user: str, what: What, reason: str = "") -> Rule:
        given = cast("dict[str, Names]", what)
        named = {name: _tuple(value) for name, value in given.items()}
        rule = Rule(allows, user, **named, reason=reason)
        self._rules.append(rule)
        return rule


def forbidden(user: User, info: RequestInfo, decision: Decision | None = None) -> ApiError:
    """The 403 as the real server words it, with the reason if the decision has one."""
    why = "" if decision is None or decision.reason in {"", _DENIED} else f": {decision.reason}"
    if not info.is_resource:
        message = f'forbidden: User "{user.name}" cannot {info.verb} path "{info.path}"{why}'
        return _forbidden(message, {})
    full = f"{info.resource}.{info.group}" if info.group else info.resource
    what = f'{full} "{info.authorised_name}"' if info.authorised_name else full
    where = f'in the namespace "{info.namespace}"' if info.namespace else "at the cluster scope"
    message = (
        f'{what} is forbidden: User "{user.name}" cannot {info.verb} resource '
        f'"{info.authorised_resource}" in API group "{info.group}" {where}{why}'
    )
    details = {"name": info.authorised_name, "group": info.group, "kind": info.resource}
    return _forbidden(message, {key: value for key, value in details.items() if value})


def resource_matches(resources: Iterable[str], info: RequestInfo) -> bool:
    """RBAC's rule: ``*``, the resource with its subresource, or any resource's subresource."""
    wanted = {"*", info.authorised_resource}
    if info.subresource:
        wanted.add(f"*/{info.subresource}")
    return not wanted.isdisjoint(resources)


def path_matches(pattern: str, path: str) -> bool:
    """RBAC's rule for paths: ``*``, the path itself, or a prefix that ends in ``*``."""
    if pattern.endswith("*"):
        return path.startswith(pattern[:-1])
    return pattern == path


def _forbidden(message: str, details: dict[str, str]) -> ApiError:
    return ApiError(
        403, "Forbidden", message, details=dict(details),
        headers=(("X-Content-Type-Options", "nosniff"),),
    )  # fmt: skip


def _has(allowed: tuple[str, ...], value: str) -> bool:
    return not allowed or "*" in allowed or value in allowed


def _tuple(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
