"""Whether the server has a resource, and lets this user list and watch it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote
from typing import Any, Final, TypeAlias
from urllib.parse import quote as quote_path

from dyninformer.cli.findings import Finding, Level, denied, fail, failed_by, message_of, ok, warn
from dyninformer.discovery import Discovery, ResolvedResource
from dyninformer.display.text import visible
from dyninformer.errors import AmbiguousResourceError, UnknownResourceError, UnreachableError
from dyninformer.resource import GroupVersionResource
from dyninformer.watching.source import Source

Object: TypeAlias = dict[str, Any]
Names: TypeAlias = list[str]

_CRDS: Final = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_VERBS: Final = ("list", "watch")
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class Found:
    """A resource, and where it may be listed and watched, as far as the server says."""

    resource: ResolvedResource
    spaces: Names
    allowed: dict[str, set[str]]
    """By verb, the namespaces in which it is not refused."""

    def may(self, verb: str) -> Names:
        """The namespaces to try."""
        return [space for space in self.spaces if space in self.allowed[verb]]


def broken_groups(discovery: Discovery) -> Iterator[Finding]:
    """What of the API cannot be asked: kubectl and others stumble over it, too."""
    try:
        problems = discovery.problems()
    except UnreachableError as error:
        yield failed_by("discovery", error)
        return
    for name, problem in problems.items():
        group, _, version = name.rpartition("/")
        yield warn(
            "discovery",
            f"the API group {name} is broken: {problem}",
            f"kubectl get apiservice {version}.{group} says which server should answer for it.",
        )


class ResourceChecks:
    """The checks of one resource that its name and rights allow; ``found`` is what is there."""

    def __init__(self, source: Source, discovery: Discovery, user: str, patience: float) -> None:
        self._source = source
        self._discovery = discovery
        self._user = user
        self._patience = patience
        self.found: Found | None = None

    def run(self, spelling: str, spaces: Names) -> Iterator[Finding]:
        """All of them; without ``found`` afterwards there is nothing to be listed."""
        try:
            resource = self._discovery.resolve(spelling)
        except (UnknownResourceError, AmbiguousResourceError) as error:
            fix = "Spell it as `dyninformer resources` does, or install its CRD."
            yield fail("resource", str(error), fix)
            yield from self._unserved(spelling)
            return
        except UnreachableError as error:
            yield failed_by("resource", error)
            return
        gvr = resource.gvr
        lacking = [verb for verb in _VERBS if verb not in resource.verbs]
        scope = "namespaced" if resource.namespaced else "cluster-scoped"
        if lacking:
            fix = f"Nothing can be kept of it; it offers {', '.join(resource.verbs) or 'nothing'}."
            yield fail("resource", f"{gvr} does not offer {' and '.join(lacking)}", fix)
            return
        yield ok("resource", f"{visible(spelling)} is {gvr}, kind {resource.kind}, {scope}")
        if not resource.namespaced:
            spaces = [""]
        yield from self._definition(gvr)
        allowed: dict[str, set[str]] = {verb: set() for verb in _VERBS}
        for space in spaces:
            yield from self._namespace(space)
            yield from self._access(gvr, space, allowed)
        if "." in gvr.group:
            yield from self._right_to_watch_crds()
        self.found = Found(resource, spaces, allowed)

    def _definition(self, gvr: GroupVersionResource) -> Iterator[Finding]:
        """Of a CRD: is it established, and which versions does it serve?"""
        try:
            reply = self._source.get_json(
                f"{_CRDS.path()}/{gvr.group_resource}", deadline=self._patience
            )
        except UnreachableError as error:
            yield failed_by("CRD", error)
            return
        if reply.status != 200 or not isinstance(reply.body, dict):
            return  # no CRD's, or not for this user to see
        yield _definition_finding(gvr, reply.body)

    def _unserved(self, spelling: str) -> Iterator[Finding]:
        """Of a resource that the server does not have: a CRD may be there, and not served."""
        try:
            reply = self._source.get_json(_CRDS.path(), deadline=self._patience)
        except UnreachableError:
            return  # the line before has said what there is to say
        items = _dict(reply.body).get("items") if reply.status == 200 else None
        for crd in map(_dict, items or ()):
            spec = _dict(crd.get("spec"))
            group, versions = str(spec.get("group")), spec.get("versions")
            if _named(_dict(spec.get("names"))) & _words(spelling) and versions:
                gvr = GroupVersionResource(
                    group, str(_dict(versions[0]).get("name")), str(_dict(spec["names"])["plural"])
                )
                finding = _definition_finding(gvr, crd)
                if finding.level is Level.FAIL:
                    yield finding

    def _namespace(self, space: str) -> Iterator[Finding]:
        """Nothing is ever seen in a namespace that is not there, and nothing fails either."""
        if not space:
            return
        try:
            reply = self._source.get_json(
                f"/api/v1/namespaces/{quote_path(space, safe='')}", deadline=self._patience
            )
        except UnreachableError as error:
            yield failed_by("namespace", error)
            return
        if reply.status == 404:
            fix = "Check its spelling with `dyninformer get namespaces`; -A looks into all."
            yield warn("namespace", f"there is no namespace {visible(space)} (yet)", fix)

    def _access(
        self, gvr: GroupVersionResource, space: str, allowed: dict[str, set[str]]
    ) -> Iterator[Finding]:
        where = f"in namespace {visible(space)}" if space else "in the whole cluster"
        refused: Names = []
        for verb in _VERBS:
            said = self._may(gvr, verb, space)
            if isinstance(said, Finding):
                allowed[verb].add(space)  # the request itself will tell
                yield said
                return
            if said:
                allowed[verb].add(space)
            else:
                refused.append(verb)
        if not refused:
            yield ok("access", f"list and watch are allowed {where}")
            return
        yield fail(
            "access",
            f"{visible(self._user) or 'this user'} may not {' or '.join(refused)} "
            f"{gvr.group_resource} {where}",
            _grant(gvr, space, self._user),
            refused=True,
        )

    def _may(self, gvr: GroupVersionResource, verb: str, space: str) -> bool | Finding:
        """What a SelfSubjectAccessReview says; a finding if it says nothing."""
        attributes = {
            "group": gvr.group, "version": gvr.version, "resource": gvr.resource,
            "verb": verb, "namespace": space,
        }  # fmt: skip
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        try:
            reply = self._source.post_json(_REVIEWS, body, self._patience)
        except UnreachableError as error:
            return failed_by("access", error)
        status = reply.body.get("status") if isinstance(reply.body, dict) else None
        if reply.status not in (200, 201) or not isinstance(status, dict):
            what = "what this user may do cannot be asked"
            finding = denied("access", what, reply.status, message_of(reply))
            return warn("access", finding.found, "Whether it may list and watch is seen below.")
        return status.get("allowed") is True

    def _right_to_watch_crds(self) -> Iterator[Finding]:
        lacking = [verb for verb in _VERBS if self._may(_CRDS, verb, "") is False]
        if not lacking:
            return
        yield warn(
            "access to CRDs",
            f"no right to {' and '.join(lacking)} {_CRDS.group_resource}: when a CRD comes, goes "
            "or changes, that is seen later, and costs another list",
            _grant(_CRDS, "", self._user),
        )


def _definition_finding(gvr: GroupVersionResource, crd: Object) -> Finding:
    spec, status = _dict(crd.get("spec")), _dict(crd.get("status"))
    conditions = {each.get("type"): each for each in map(_dict, status.get("conditions") or ())}
    name = gvr.group_resource
    established = conditions.get("Established", {})
    if established.get("status") != "True":
        others = [established, conditions.get("NamesAccepted", {})]
        said = [str(each.get("message") or "") for each in others if each.get("status") != "True"]
        why = next(filter(None, said), "no reason is given")
        fix = f"kubectl describe crd {name}; names that another CRD has are refused."
        return fail("CRD", f"{name} is not established: {visible(why)}", fix)
    versions = [_dict(each) for each in spec.get("versions") or ()]
    served = [str(each.get("name")) for each in versions if each.get("served")]
    stored = [str(each) for each in status.get("storedVersions") or ()]
    listed = f"serves {', '.join(served)}, stores {', '.join(stored)}"
    if gvr.version not in served:
        fix = f"Ask for {served[0] if served else 'another version'}, or have it served."
        return fail("CRD", f"{name} does not serve {gvr.version}: it {listed}", fix)
    mine = next(each for each in versions if each.get("name") == gvr.version)
    if mine.get("deprecated"):
        fix = (
            f"Move to a newer version: {', '.join(each for each in served if each != gvr.version)}"
        )
        return warn("CRD", f"{gvr} is deprecated; {name} {listed}", fix)
    return ok("CRD", f"established; {listed}")


def _named(names: Object) -> set[str]:
    """All names that a CRD gives its resource."""
    found = [names.get("plural"), names.get("singular"), names.get("kind")]
    return {str(each).lower() for each in [*found, *(names.get("shortNames") or ())] if each}


def _words(spelling: str) -> set[str]:
    """What in a spelling may be the name: ``cert``, ``cert.group``, ``group/version/cert``."""
    return {spelling.lower().rpartition("/")[2].partition(".")[0]}


def _grant(gvr: GroupVersionResource, space: str, user: str) -> str:
    """The commands that give the right, for who may give it."""
    name = f"watch-{gvr.resource}"
    kind, inside = ("role", f" -n {space}") if space else ("clusterrole", "")
    if user.startswith(_SERVICE_ACCOUNT):
        subject = f"--serviceaccount={user.removeprefix(_SERVICE_ACCOUNT)}"
    else:
        subject = f"--user={quote(visible(user))}" if user else "--user=NAME"
    return (
        f"kubectl create {kind} {name}{inside} --verb=get,list,watch "
        f"--resource={gvr.group_resource} && "
        f"kubectl create {kind}binding {name}{inside} --{kind}={name} {subject}"
    )


def _dict(found: object) -> Object:
    return found if isinstance(found, dict) else {}
