"""Reviews: questions about users and rights that are answered and kept nowhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dyninformer.testing.api.access import Access, User
from dyninformer.testing.api.rbac import Rbac, Rights
from dyninformer.testing.api.request_info import RequestInfo
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.status import ApiError, bad_request, cause
from dyninformer.types import Object

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
    for review in REVIEWS:
        if (review.group, review.version, review.plural) == (
            info.group, info.version, info.resource
        ):  # fmt: skip
            return review
    return None


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
    return ApiError(
        422, "Invalid", f'.{_AUTHORIZATION} "" is invalid: {field}: {message}',
        details={"group": _AUTHORIZATION, "causes": [cause(reason, message, field)]},
    )  # fmt: skip
