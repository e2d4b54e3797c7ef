"""What `replay` and `serve` share: a server that others can use, and objects loaded into it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from dyninformer.cli.arguments import panel
from dyninformer.cli.errors import WRONG_USAGE, CommandError
from dyninformer.cli.terminal import say
from dyninformer.display.text import visible
from dyninformer.moments.recorded import ResourceDefinition
from dyninformer.testing import ApiError
from dyninformer.testing.cluster.builtins import BUILTINS
from dyninformer.types import Object

if TYPE_CHECKING:
    from dyninformer.testing import ApiServer


_CRD: Final = "CustomResourceDefinition"
_CRD_API: Final = "apiextensions.k8s.io/v1"

_BUILT_IN: Final = {(each.group, each.plural): each.api_version for each in BUILTINS}
_UNAPPROVED: Final = {"api-approved.kubernetes.io": "unapproved, served from a file"}
_KEPT_METADATA: Final = ("name", "labels", "annotations")
_SAID: Final = 20  # that are skipped; of the others their number


_server_option: Final = panel("The server")

Port: TypeAlias = Annotated[
    int,
    _server_option(
        metavar="PORT", help="On 127.0.0.1; 0 takes any that is free.", min=0, max=65535
    ),
]
KubeconfigOut: TypeAlias = Annotated[
    Path | None,
    _server_option(
        metavar="FILE", help="Where to write the kubeconfig, which is removed at the end."
    ),
]


@contextmanager
def serving(port: int) -> Iterator[ApiServer]:
    """An embedded server that others on this machine cannot read: with TLS, and a token."""
    try:
        from dyninformer.testing import ApiServer  # noqa: PLC0415 - an extra

        server = ApiServer(tls=True, controllers=False, port=port)
    except ImportError as error:
        raise CommandError(
            f"this command needs the embedded API server, and that {error.name}: "
            "pip install 'dyninformer[cli,testing]'"
        ) from None
    except OSError as error:
        raise CommandError(f"--port {port}: {error.strerror}", code=WRONG_USAGE) from None
    with server:
        yield server


@contextmanager
def announced(server: ApiServer, path: Path | None, what: str) -> Iterator[None]:
    """Say how to reach the server: what to type goes to stdout, the rest to stderr."""
    if path is not None:
        path = path.expanduser()
        if os.path.lexists(path):
            raise CommandError(f"--kubeconfig-out {path}: it exists already", code=WRONG_USAGE)
    written = server.kubeconfig(path).absolute()
    try:
        say(f"{what}, on {server.url}")
        typer.echo(f"export KUBECONFIG={shlex.quote(str(written))}")
        yield
    finally:
        written.unlink(missing_ok=True)


class Skipped:
    """Says on stderr what is skipped: the first ones at once, and how many more in the end."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, text: str) -> None:
        """One more."""
        self._count += 1
        if self._count <= _SAID:
            say(f"skipped: {visible(text)}")

    def end(self) -> None:
        """Say how many more there were."""
        if self._count > _SAID:
            say(f"skipped: {self._count - _SAID} more")


class NotLoadedError(ValueError):
    """The server cannot take a resource or an object, for the reason that this names."""


class Loader:
    """Loads objects into a server as they are, with all they need. For one thread."""

    def __init__(self, server: ApiServer, namespace: str = "default") -> None:
        self._server = server
        self._namespace = namespace
        self._namespaces: set[str] = set()
        self._kinds = {(each.api_version, each.kind) for each in BUILTINS}
        self._defined: set[str] = set()
        """CRDs that came as objects."""
        self._made: dict[str, list[ResourceDefinition]] = {}
        """By CRD: the versions that one made here has."""

    def serve(self, resource: ResourceDefinition) -> None:
        """Have a resource served; nothing is done if it is. NotLoadedError if it cannot be."""
        gvr = resource.parsed
        built_in = _BUILT_IN.get((gvr.group, gvr.resource))
        if built_in == gvr.group_version or (gvr.group_version, resource.kind) in self._kinds:
            return
        if built_in is not None or gvr.group_resource in self._defined:
            raise NotLoadedError(
                f"{resource.kind} of {gvr.group_version}: another version is served"
            )
        if "." not in gvr.group:
            raise NotLoadedError(
                f"{resource.kind} of {gvr.group_version}: this server does not have this kind"
            )
        versions = [*self._made.get(gvr.group_resource, ()), resource]
        try:
            self._server.install(_definition(versions))
        except (ApiError, TimeoutError, ValueError) as error:
            raise NotLoadedError(f"{resource.kind} of {gvr.group_version}: {error}") from None
        self._made[gvr.group_resource] = versions
        self._kinds.add((gvr.group_version, resource.kind))

    def load(self, obj: Object) -> None:
        """Put an object in place; NotLoadedError if that cannot be."""
        try:
            if is_crd(obj):
                self._define(_installable(obj))
            else:
                self._server.load(self._placed(_whole(obj)))
        except (ApiError, LookupError, TimeoutError, TypeError, ValueError) as error:
            raise NotLoadedError(f"{_kind_and_name(obj)}: {error}") from None

    def unload(self, obj: Object) -> None:
        """Take an object out; nothing is done if it is not there."""
        try:
            if is_crd(obj):
                self._server.delete(f"customresourcedefinitions/{obj['metadata']['name']}")
            else:
                self._server.unload(self._placed(obj))
        except (ApiError, LookupError, TypeError, ValueError) as error:
            if not (isinstance(error, ApiError) and error.code == 404):
                raise NotLoadedError(f"{_kind_and_name(obj)}: {error}") from None

    def _define(self, crd: Object) -> None:
        self._server.install(crd)
        spec = crd["spec"]
        self._defined.add(crd["metadata"]["name"])
        self._kinds.update(
            (f"{spec['group']}/{each['name']}", spec["names"]["kind"])
            for each in spec["versions"]
            if each.get("served")
        )

    def _placed(self, obj: Object) -> Object:
        """The object in its namespace, which is made if it is not there."""
        namespace = obj["metadata"].get("namespace") or self._namespace
        if not isinstance(namespace, str):
            raise TypeError("its namespace is not a string")
        if namespace not in self._namespaces and obj.get("kind") != "Namespace":
            about = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            try:
                self._server.create(about)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
            self._namespaces.add(namespace)
        return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def is_crd(obj: Mapping[str, Any]) -> bool:
    """Whether an object is the definition of others."""
    return obj.get("kind") == _CRD and str(obj.get("apiVersion")).startswith(
        "apiextensions.k8s.io/"
    )


def _kind_and_name(obj: Mapping[str, Any]) -> str:
    """An object's kind and name, for messages."""
    metadata = obj.get("metadata")
    head: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    namespace = f"{head['namespace']}/" if head.get("namespace") else ""
    return f"{obj.get('kind')} {namespace}{head.get('name')}"


def _whole(obj: Object) -> Object:
    """The object with what a server gives at once: a namespace that was never anywhere is open."""
    if obj.get("kind") == "Namespace" and obj.get("apiVersion") == "v1":
        return {"status": {"phase": "Active"}, **obj}
    return obj


def _installable(crd: Object) -> Object:
    """A CRD of another cluster as one would create it here.

    Its state there (terminating, not established) is left out: its objects would go.
    """
    metadata = {name: crd["metadata"][name] for name in _KEPT_METADATA if name in crd["metadata"]}
    return {
        "apiVersion": crd["apiVersion"],
        "kind": _CRD,
        "metadata": metadata,
        "spec": crd.get("spec"),
    }


def _definition(versions: list[ResourceDefinition]) -> Object:
    """A CRD that takes every object of a resource, in each of these versions, as it is."""
    # A version that was described when its CRD had gone knows no more than its kind.
    known = next((each for each in reversed(versions) if each.singular), versions[-1])
    gvr = known.parsed
    return {
        "apiVersion": _CRD_API,
        "kind": _CRD,
        "metadata": {"name": gvr.group_resource, "annotations": _UNAPPROVED},
        "spec": {
            "group": gvr.group,
            "scope": "Namespaced" if known.namespaced else "Cluster",
            "names": {
                "plural": gvr.resource,
                "singular": known.singular or known.kind.lower(),
                "kind": known.kind,
                "listKind": f"{known.kind}List",
                "shortNames": list(known.short_names),
                "categories": list(known.categories),
            },
            "versions": [_crd_version(each, stored=not at) for at, each in enumerate(versions)],
        },
    }


def _crd_version(resource: ResourceDefinition, *, stored: bool) -> Object:
    columns = [
        {
            "name": each.name,
            "type": each.type,
            "jsonPath": each.path,
            **({"priority": each.priority} if each.priority else {}),
        }
        for each in resource.columns
    ]
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "name": resource.parsed.version,
        "served": True,
        "storage": stored,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }
