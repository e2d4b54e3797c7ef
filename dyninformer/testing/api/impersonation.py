"""Acting as somebody else: ``kubectl --as``, for who may."""

from __future__ import annotations

from dataclasses import replace

from dyninformer.testing.api.access import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    User,
    forbidden,
)
from dyninformer.testing.api.rbac import Rights
from dyninformer.testing.api.request_info import RequestInfo
from dyninformer.testing.messages import Request
from dyninformer.testing.status import bad_request

_SERVICE_ACCOUNT = "system:serviceaccount:"


def acting_user(user: User, request: Request, info: RequestInfo, rights: Rights) -> User:
    """Whom the Impersonate headers of ``request`` name, or ``user`` itself.

    Raises the 403 of a user who may not act as that user or with those groups; it names
    the finer right that 1.36 asks for last, to act so in this one request.
    """
    name = request.headers.get("impersonate-user", "")
    named = request.headers.get("impersonate-group", "")
    groups = tuple(group for group in (each.strip() for each in named.split(",")) if group)
    if not name:
        if groups:
            raise bad_request("requested groups without impersonating a user name")
        return user
    asked = [_subject(name), *(_impersonate("groups", group) for group in groups)]
    if not all(rights.decide(user, each).allowed for each in asked):
        raise forbidden(user, replace(info, verb=f"impersonate-on:user-info:{info.verb}"))
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
        path="", verb="impersonate", is_resource=True, version="v1", resource=resource,
        namespace=namespace, name=name,
    )  # fmt: skip
