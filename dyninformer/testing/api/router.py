"""The API: a request in, an answer out, over the state of one cluster."""

from __future__ import annotations

import logging
import traceback
from dataclasses import replace
from datetime import UTC, datetime

from dyninformer.testing.api.access import AUTHENTICATED, MASTERS, Access, User
from dyninformer.testing.api.answers import (
    document_response,
    error_response,
    method_not_allowed,
    warning_headers,
)
from dyninformer.testing.api.bodies import BODY_LIMIT, read_plain_object, too_large
from dyninformer.testing.api.discovery import Discovery
from dyninformer.testing.api.endpoints import Endpoints
from dyninformer.testing.api.impersonation import acting_user
from dyninformer.testing.api.lists import PlainJson
from dyninformer.testing.api.negotiation import negotiate
from dyninformer.testing.api.openapi import OpenApi
from dyninformer.testing.api.rbac import Rbac, Rights
from dyninformer.testing.api.representations import Representations
from dyninformer.testing.api.request_info import RequestInfo, read_request_info
from dyninformer.testing.api.resource_requests import ResourceRequests
from dyninformer.testing.api.reviews import REVIEWS, Review, Reviews, find_review
from dyninformer.testing.cluster.cluster import Cluster
from dyninformer.testing.cluster.incoming import read_object
from dyninformer.testing.cluster.log import GroupResource, Key
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.timestamps import timestamp
from dyninformer.testing.cluster.write_options import write_options
from dyninformer.testing.messages import Answer, Request, Response
from dyninformer.testing.status import ApiError, warned

_log = logging.getLogger(__name__)

_CRDS = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")
_ANYBODY = User("system:admin", (MASTERS, AUTHENTICATED))


class Api:
    """Everything that kube-apiserver answers to clients of collections.

    ``handle`` is synchronous and never raises: a refusal becomes its Status, anything
    unexpected a 500 that names the exception's class. It is called from the cluster's
    thread. Without ``access`` nobody is asked for a token, and everybody may do all.
    """

    def __init__(self, cluster: Cluster, access: Access | None = None) -> None:
        self._cluster = cluster
        self._access = access
        known = access or Access()
        rbac = Rbac(lambda: cluster.log)
        self._rights = Rights(known, rbac)
        self._reviews = Reviews(known, rbac, lambda: timestamp(cluster.now()))
        groups = {each.group for each in cluster.resources.all() if each.builtin}
        builtin_groups = frozenset(groups | {review.group for review in REVIEWS})
        self._endpoints = Endpoints(
            Discovery(cluster.resources, self._storage_version),
            OpenApi(cluster.resources),
            builtin_groups,
        )
        representations = Representations(
            PlainJson(), lambda: datetime.fromtimestamp(cluster.now(), UTC)
        )
        self._resources = ResourceRequests(cluster, representations, builtin_groups)

    def handle(self, request: Request) -> Answer:
        """The answer to one request: a response, or the stream of a watch."""
        try:
            return self._answer(request)
        except ApiError as error:
            return error_response(request, error)
        except Exception as failure:  # noqa: BLE001  a server answers, whatever happens inside
            return error_response(request, _unexpected(request, failure))

    def _answer(self, request: Request) -> Answer:
        info = read_request_info(request)
        user = self._user(request, info)
        if len(request.body) > BODY_LIMIT:
            raise too_large()
        if not info.is_resource:
            return self._endpoints.answer(request)
        review = find_review(info)
        if review is not None:
            return self._review(request, info, review, user)
        return self._resources.answer(request, info)

    def _user(self, request: Request, info: RequestInfo) -> User:
        """Who asks, once it is clear that they may."""
        if self._access is None:
            return _ANYBODY
        user = acting_user(self._access.authenticate(request), request, info, self._rights)
        self._rights.check(user, info)
        return user

    def _review(
        self, request: Request, info: RequestInfo, review: Review, user: User
    ) -> Response:  # fmt: skip
        if info.verb != "create" or info.name:
            raise method_not_allowed()
        options = write_options("CreateOptions", request.param, request.headers)
        body, duplicates = read_plain_object(request, review.kind)
        read, warnings = read_object(
            review.resource, body, replace(options, duplicates=duplicates)
        )  # fmt: skip
        with warned(warnings):
            answered = self._reviews.answer(review, user, read)
        media = negotiate(request)
        return document_response(answered, media, status=201, headers=warning_headers(warnings))

    def _storage_version(self, resource: Resource) -> str:
        """The version that a CRD's objects are said to be stored in."""
        name = f"{resource.plural}.{resource.group}"
        crd = None if resource.builtin else self._cluster.log.get(_CRDS, Key("", name))
        versions = crd.object["spec"]["versions"] if crd else ()
        stored = (str(version["name"]) for version in versions if version.get("storage"))
        return next(stored, resource.version)


def _unexpected(request: Request, failure: Exception) -> ApiError:
    """A 500 for a mistake of this server; what the exception says stays out of the log."""
    name = type(failure).__name__
    frames = "".join(traceback.format_tb(failure.__traceback__))
    _log.error("%s in %s %s:\n%s", name, request.method, request.path, frames)
    message = f"Internal error occurred: {name}"
    return ApiError(500, "InternalError", message, details={"causes": [{"message": name}]})
