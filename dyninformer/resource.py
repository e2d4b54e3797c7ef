"""The name of a collection: group, version and plural resource."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from dyninformer.checked import checked_text, wrong

VERSION_NAME = re.compile(r"v[1-9][0-9]*(?:(?:alpha|beta)[1-9][0-9]*)?\Z")
DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?\Z")
_GROUP = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\Z")


def checked_spelling(resource: object) -> str:
    """A text, which may be one of a resource's spellings."""
    if isinstance(resource, tuple | list) and len(resource) == 3:
        parts = ", ".join(map(repr, resource))
        raise wrong("a resource", resource, f"GroupVersionResource({parts}), or a name")
    return checked_text(
        "a resource", resource, "a GroupVersionResource, or a name such as 'certificates'"
    )


@dataclass(frozen=True, slots=True, order=True)
class GroupVersionResource:
    """Which collection, in which version. The core group is ``""``.

    >>> GroupVersionResource("cert-manager.io", "v1", "certificates")
    GroupVersionResource(group='cert-manager.io', version='v1', resource='certificates')
    >>> print(GroupVersionResource("", "v1", "pods"))
    pods.v1
    """

    group: str
    version: str
    resource: str

    def __post_init__(self) -> None:
        checked_text("group", self.group, "an API group, '' for the core one")
        checked_text("version", self.version, "an API version, such as 'v1'")
        checked_text("resource", self.resource, "a plural in lower case, such as 'pods'")
        if self.group and not _GROUP.match(self.group):
            raise ValueError(f"{self.group!r} is no API group: expected a name like 'apps'")
        if not DNS_LABEL.match(self.version):
            raise ValueError(f"{self.version!r} is no API version: expected a name like 'v1'")
        if not DNS_LABEL.match(self.resource):
            raise ValueError(
                f"{self.resource!r} is no resource: expected its plural in lower case, like 'pods'"
            )

    @classmethod
    def parse(cls, text: str) -> GroupVersionResource:
        """Read one of the full spellings; nothing is asked of a server.

        >>> GroupVersionResource.parse("ipamblocks.v1.crd.projectcalico.org").group
        'crd.projectcalico.org'
        >>> GroupVersionResource.parse("apps/v1/statefulsets") == GroupVersionResource.parse(
        ...     "statefulsets.v1.apps")
        True
        >>> print(GroupVersionResource.parse("v1/pods"))
        pods.v1
        """
        checked_spelling(text)
        if "/" in text:
            *group, version, resource = text.split("/") if text.count("/") <= 2 else ("", "", "")
            # Without a group it may be something else: ``apps/v1``, ``pods/shop-1``.
            if version and resource and (all(group) if group else VERSION_NAME.match(version)):
                return cls(group[0] if group else "", version, resource)
        else:
            resource, _, rest = text.partition(".")
            version, _, found = rest.partition(".")
            if resource and VERSION_NAME.match(version) and not rest.endswith("."):
                return cls(found, version, resource)
        raise ValueError(
            f"{text!r} names no group, version and resource: expected a form like "
            "'certificates.v1.cert-manager.io', 'cert-manager.io/v1/certificates' or 'v1/pods'. "
            "To have a shorter name looked up, pass it to for_resource, which asks the server."
        )

    def __str__(self) -> str:
        tail = f".{self.group}" if self.group else ""
        return f"{self.resource}.{self.version}{tail}"

    @property
    def group_version(self) -> str:
        """The apiVersion of its objects: ``cert-manager.io/v1``, or ``v1`` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """The name without the version, as a CRD has it: ``certificates.cert-manager.io``."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    def path(self, namespace: str = "") -> str:
        """The collection's URL path, of one namespace or of all."""
        checked_text("namespace", namespace, "a name, '' for all")
        root = f"/apis/{self.group}" if self.group else "/api"
        inside = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        return f"{root}/{self.version}{inside}/{self.resource}"


def of_secrets(gvr: GroupVersionResource) -> bool:
    """Its objects are Secrets, whatever a transform leaves of them: no value of theirs is shown."""
    return gvr.group_resource == "secrets"
