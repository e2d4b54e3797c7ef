"""The API: a request in, an answer out, over the state of one cluster.

`Api` asks whether the user may, and hands the request on: to `Endpoints` (paths that are no
resources), to `Reviews`, or to `ResourceRequests`, which knows what path takes which verb.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from dyninformer.testing.api.access import (
    REVIEWS,
    Access,
    Rbac,
    ReceivedRequest,
    Review,
    Reviews,
    Rights,
    User,
    acting_user,
    find_review,
)
from dyninformer.testing.api.answers import (
    Media,
    bytes_response,
    document_response,
    error_response,
    meta_kinds,
    method_not_allowed,
    negotiate,
    nothing_there,
    warning_headers,
)
from dyninformer.testing.api.bodies import (
    BODY_LIMIT,
    media_type,
    read_delete_options,
    read_object,
    read_plain_object,
    too_large,
)
from dyninformer.testing.api.discovery import DiscoveryDocuments, Endpoints, OpenApi
from dyninformer.testing.api.representations import MetadataOnly, PlainJson
from dyninformer.testing.api.tables import Now, Tables, read_include
from dyninformer.testing.cluster import incoming
from dyninformer.testing.cluster.cluster import Cluster
from dyninformer.testing.cluster.lists import (
    Representation,
    get_version,
    list_versions,
    parse_list_options,
)
from dyninformer.testing.cluster.log import Key, Version
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.strategies import CRDS
from dyninformer.testing.cluster.timestamps import timestamp
from dyninformer.testing.cluster.watches import open_watch
from dyninformer.testing.cluster.write_options import (
    APPLY,
    JSON,
    MERGE,
    STRATEGIC,
    WriteResult,
    delete_options,
    write_options,
)
from dyninformer.testing.messages import Answer, Request, RequestInfo, Response
from dyninformer.testing.status import ApiError, bad_request, not_found, page_not_found, warned

_logger = logging.getLogger(__name__)


class Api:
    """Everything that kube-apiserver answers to clients of collections.

    ``answer`` is synchronous and never raises: a refusal becomes its Status, anything
    unexpected a 500 that names the exception's class. It is called from the cluster's thread.
    """

    def __init__(self, cluster: Cluster, access: Access) -> None:
        self._cluster = cluster
        self._access = access
        rbac = Rbac(lambda: cluster.log)
        self._rights = Rights(access, rbac)
        self._reviews = Reviews(access, rbac, lambda: timestamp(cluster.now()))
        groups = {each.group for each in cluster.resources.all() if each.builtin}
        builtin_groups = frozenset(groups | {review.group for review in REVIEWS})
        self._endpoints = Endpoints(
            DiscoveryDocuments(cluster.resources, self._storage_version),
            OpenApi(cluster.resources),
            builtin_groups,
        )
        self._resources = ResourceRequests(cluster, builtin_groups)

    def handle(self, request: Request) -> Answer:
        """The answer to a request that was not looked at yet."""
        return self.answer(self._access.receive(request))

    def answer(self, received: ReceivedRequest) -> Answer:
        """The answer to one request: a response, or the stream of a watch."""
        request = received.request
        try:
            return self._answer(received)
        except ApiError as error:
            return error_response(request, error)
        except Exception as failure:  # noqa: BLE001  a server answers, whatever happens inside
            return error_response(request, _unexpected(request, failure))

    def _answer(self, received: ReceivedRequest) -> Answer:
        request, info = received.request, received.info
        user = acting_user(received, self._rights)
        self._rights.check(user, info)
        if len(request.body) > BODY_LIMIT:
            raise too_large()
        if not info.is_resource:
            return self._endpoints.answer(request)
        review = find_review(info)
        if review is not None:
            return self._review(request, info, review, user)
        return self._resources.answer(request, info)

    def _review(self, request: Request, info: RequestInfo, review: Review, user: User) -> Response:
        if info.verb != "create" or info.name:
            raise method_not_allowed()
        options = write_options("CreateOptions", request.param, request.headers)
        body, duplicates = read_plain_object(request, review.kind)
        options = replace(options, duplicates=duplicates)
        read, warnings = incoming.read_object(review.resource, body, options)
        with warned(warnings):
            answered = self._reviews.answer(review, user, read)
        media = negotiate(request)
        return document_response(answered, media, status=201, headers=warning_headers(warnings))

    def _storage_version(self, resource: Resource) -> str:
        """The version that a CRD's objects are said to be stored in."""
        name = f"{resource.plural}.{resource.group}"
        crd = None if resource.builtin else self._cluster.log.get(CRDS, Key("", name))
        versions = crd.object["spec"]["versions"] if crd else ()
        stored = (str(version["name"]) for version in versions if version.get("storage"))
        return next(stored, resource.version)


def _unexpected(request: Request, failure: Exception) -> ApiError:
    """A 500 for a mistake of this server; what the exception says stays out of the log."""
    name = type(failure).__name__
    frames = "".join(traceback.format_tb(failure.__traceback__))
    _logger.error("%s in %s %s:\n%s", name, request.method, request.path, frames)
    message = f"Internal error occurred: {name}"
    return ApiError(500, "InternalError", message, details={"causes": [{"message": name}]})


_READS_OF_ALL = ("list", "watch")
_ON_OBJECTS = ("get", "update", "patch", "delete")
_ON_SUBRESOURCES = ("get", "update", "patch")
_PATCH_TYPES = (JSON, MERGE, STRATEGIC, APPLY)

Handler = Callable[[Request, RequestInfo, Resource], Answer]


class ResourceRequests:
    """Answers requests for the resources of a cluster. Raises ApiErrors."""

    def __init__(self, cluster: Cluster, builtin_groups: frozenset[str]) -> None:
        self._cluster = cluster
        self._representations = _Representations(lambda: datetime.fromtimestamp(cluster.now(), UTC))
        self._builtin_groups = builtin_groups
        self._handlers: dict[str, Handler] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    def answer(self, request: Request, info: RequestInfo) -> Answer:
        """What the resource behind the path answers."""
        resource = self._cluster.resources.find(info.group, info.version, info.resource)
        if resource is None:
            raise nothing_there() if info.group in self._builtin_groups else page_not_found()
        (_check_builtin if resource.builtin else _check_custom)(info, resource)
        warnings = (resource.deprecation,) if resource.deprecation else ()
        with warned(warnings):
            answer = self._handlers[info.verb](request, info, resource)
        headers = (*warning_headers(warnings), *answer.headers)
        if isinstance(answer, Response):
            return replace(answer, headers=headers)
        answer.headers = headers
        return answer

    def _get(self, request: Request, info: RequestInfo, resource: Resource) -> Answer:
        media = negotiate(request, meta_kinds)
        key = _key(info, resource)
        if info.subresource == "scale":
            return document_response(self._cluster.writer.get_scale(resource, key), media)
        revision = request.param("resourceVersion")
        version = get_version(self._cluster.caches, resource, key, revision)
        shown = self._representations.of(request, media).single(version, resource)
        return bytes_response(request, [shown], media)

    def _list(self, request: Request, info: RequestInfo, resource: Resource) -> Answer:
        media = negotiate(request, meta_kinds)
        caches = self._cluster.caches
        options = parse_list_options(request, resource, "list", caches.settings)
        representation = self._representations.of(request, media)
        page = list_versions(caches, resource, info.namespace, options)
        return bytes_response(request, representation.list_(page, resource), media)

    def _watch(self, request: Request, info: RequestInfo, resource: Resource) -> Answer:
        media = negotiate(request, meta_kinds, watch=True)
        if info.name:  # /watch/.../NAME
            selector = ("fieldSelector", f"metadata.name={info.name}")
            request = replace(request, query=(selector, *request.query))
        caches = self._cluster.caches
        options = parse_list_options(request, resource, "watch", caches.settings)
        representation = self._representations.of(request, media)
        return open_watch(caches, resource, info.namespace, options, representation)

    def _create(self, request: Request, info: RequestInfo, resource: Resource) -> Answer:
        options = write_options("CreateOptions", request.param, request.headers)
        body, duplicates = read_object(request, resource)
        options = replace(options, duplicates=duplicates, size=len(request.body))
        result = self._cluster.writer.create(resource, info.namespace, body, options)
        return self._written(request, resource, result)

    def _update(self, request: Request, info: RequestInfo, resource: Resource) -> Answer:
        options = write_options("UpdateOptions", request.param, request.headers)
        if info.subresource == "scale":
            body, duplicates = read_plain_object(request, "Scale")
        else:
            body, duplicates = read_object(request, resource)
        options = replace(options, duplicates=duplicates, size=len(request.body))
        key = _key(info, resource)
        result = self._cluster.writer.replace(resource, key, body, options, info.subresource)
        return self._written(request, resource, result, info.subresource)

    def _patch(self, request: Request, info: RequestInfo, resource: Resource) -> Answer:
        kind = media_type(request)
        if resource.builtin and kind not in _PATCH_TYPES:
            message = "415: Unsupported Media Type"
            raise ApiError(415, "UnsupportedMediaType", message, details={})
        options = write_options("PatchOptions", request.param, request.headers, patch_type=kind)
        options = replace(options, size=len(request.body))
        key = _key(info, resource)
        result = self._cluster.writer.patch(
            resource, key, kind, request.body, options, info.subresource
        )
        return self._written(request, resource, result, info.subresource)

    def _delete(self, request: Request, info: RequestInfo, resource: Resource) -> Answer:
        media = negotiate(request, meta_kinds)
        options = delete_options(request.param, read_delete_options(request))
        left = self._cluster.writer.delete(resource, _key(info, resource), options)
        if left.get("kind") == "Status":
            return document_response(left, replace(media, conversion=None))
        return self._written(request, resource, WriteResult(left))

    def _delete_collection(self, request: Request, info: RequestInfo, resource: Resource) -> Answer:
        media = negotiate(request, meta_kinds)
        caches = self._cluster.caches
        selected = parse_list_options(request, resource, "deletecollection", caches.settings)
        options = delete_options(request.param, read_delete_options(request))
        representation = self._representations.of(request, media)
        page = list_versions(caches, resource, info.namespace, selected)
        answer = bytes_response(request, representation.list_(page, resource), media)
        self._cluster.writer.delete_collection(resource, info.namespace, options, page.versions)
        return answer

    def _written(
        self, request: Request, resource: Resource, result: WriteResult, subresource: str = ""
    ) -> Response:
        media = negotiate(request, meta_kinds)
        headers = warning_headers(result.warnings)
        if subresource == "scale":
            return document_response(result.object, media, result.status, headers)
        metadata = result.object["metadata"]
        key = Key(metadata.get("namespace", ""), metadata["name"])
        version = Version(resource.collection, key, 0, result.object)
        shown = self._representations.of(request, media).single(version, resource)
        return bytes_response(request, [shown], media, result.status, headers)


def _key(info: RequestInfo, resource: Resource) -> Key:
    """Where the object is kept. A request for a namespace names it as its namespace too."""
    return Key(info.namespace if resource.namespaced else "", info.name)


def _check_custom(info: RequestInfo, resource: Resource) -> None:
    """Refuse what a path of a CRD does not take, as the handler of CRDs does."""
    if not resource.namespaced and info.namespace:
        raise page_not_found()
    if resource.namespaced and not info.namespace and info.verb not in _READS_OF_ALL:
        raise page_not_found()
    there = {"": True, "status": resource.status, "scale": resource.scale is not None}
    if not there.get(info.subresource):
        raise not_found(resource.group, resource.plural, info.name)
    if not info.verb or (info.subresource and info.verb not in _ON_SUBRESOURCES):
        details = {"group": resource.group, "kind": resource.plural}
        message = f'{info.verb} is not supported on resources of kind "{resource.full_name}"'
        raise ApiError(405, "MethodNotAllowed", message, details=details)
    if info.verb in _ON_OBJECTS and not info.name:
        raise bad_request("name must be provided")


def _check_builtin(info: RequestInfo, resource: Resource) -> None:
    """Refuse what a built-in path does not take: first the path, then the method."""
    of_object = bool(info.name)
    if resource.namespaced != bool(info.namespace) and (of_object or not resource.namespaced):
        itself = resource.collection == ("", "namespaces") and info.namespace == info.name
        if not itself:
            raise nothing_there()
    if info.subresource:
        there = {
            "status": resource.status,
            "scale": resource.scale is not None,
            "finalize": resource.collection == ("", "namespaces"),
        }
        if not there.get(info.subresource):
            raise nothing_there()
        allowed: tuple[str, ...] = (
            ("update",) if info.subresource == "finalize" else _ON_SUBRESOURCES
        )
    elif of_object:
        allowed = (*_ON_OBJECTS, "watch")
    elif resource.namespaced and not info.namespace:
        allowed = _READS_OF_ALL
    else:
        allowed = ("list", "watch", "create", "deletecollection")
    if info.verb not in allowed or (not info.subresource and info.verb not in resource.verbs):
        raise method_not_allowed()


class _Representations:
    """Plain objects, tables and metadata: one of each kind, made when first asked for."""

    def __init__(self, now: Now) -> None:
        self._plain = PlainJson()
        self._now = now
        self._made: dict[tuple[str, ...], Representation] = {}

    def of(self, request: Request, media: Media) -> Representation:
        """What was negotiated; the 400 of a table with an unknown includeObject."""
        conversion = media.conversion
        if conversion is None:
            return self._plain
        key: tuple[str, ...] = (conversion.kind, conversion.api_version)
        if conversion.kind == "Table":
            include = read_include(request)
            key = (*key, include)
            if key not in self._made:
                self._made[key] = Tables(conversion.api_version, include, self._plain, self._now)
        elif key not in self._made:
            of_lists = conversion.kind.endswith("List")
            self._made[key] = MetadataOnly(conversion.api_version, of_lists=of_lists)
        return self._made[key]
