"""Where a configuration is looked for when no client is given, and what to say if none is there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dyninformer.errors import ConfigError
from dyninformer.watching.failures import without_password

__all__ = ["InCluster", "KubeconfigFiles", "Named", "find_configuration", "harmless", "named_in"]

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_POD_NAMESPACE = ACCOUNT.with_name("namespace")
_DEMO = "Without a cluster at hand, `dyninformer demo` shows it at work on an embedded one."


@dataclass(frozen=True, slots=True)
class KubeconfigFiles:
    """Kubeconfig files that are merged, as kubectl does, and the context to use of them."""

    paths: tuple[str, ...]
    context: str | None = None

    @property
    def joined(self) -> str:
        """The files as the official client takes them."""
        return os.pathsep.join(self.paths)

    def __str__(self) -> str:
        return ", ".join(self.paths)


@dataclass(frozen=True, slots=True)
class InCluster:
    """The service account of the pod that this runs in."""

    host: str

    @property
    def namespace(self) -> str:
        """The pod's own namespace, "" if it cannot be read."""
        try:
            return _POD_NAMESPACE.read_text("utf-8").strip()
        except OSError:
            return ""

    def __str__(self) -> str:
        return "the pod's service account"


@dataclass(frozen=True, slots=True)
class Named:
    """What a context names. It stays, whatever becomes of the current context meanwhile."""

    context: str
    server: str
    plugin: str | None
    """The command of the user's credential plugin, if there is one."""
    namespace: str
    """The namespace that the context is in, "" if it names none."""


def find_configuration(
    kubeconfig: str | os.PathLike[str] | None,
    context: str | None,
    *,
    environment: Mapping[str, str],
) -> KubeconfigFiles | InCluster:
    """Where the configuration is: ``kubeconfig``, $KUBECONFIG, ~/.kube/config, in-cluster.

    Raises `ConfigError`, which lists where it was looked for.
    """
    if kubeconfig is not None:
        named = _existing(os.fspath(kubeconfig))
        if named:
            return KubeconfigFiles(named, context)
        raise ConfigError(
            f"no kubeconfig at {os.fspath(kubeconfig)}: there is no such file. {_DEMO}"
        )
    tried = []
    listed = environment.get("KUBECONFIG")
    if listed:
        tried.append(f"$KUBECONFIG ({listed}): no such file")
    else:
        listed = os.path.join("~", ".kube", "config")
        tried += ["$KUBECONFIG: not set", f"{listed}: no such file"]
    files = _existing(listed)
    if files:
        return KubeconfigFiles(files, context)
    if context is None:
        host = environment.get("KUBERNETES_SERVICE_HOST")
        port = environment.get("KUBERNETES_SERVICE_PORT")
        if host and port and ACCOUNT.is_file():
            return InCluster(
                f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
            )
        missing = f"no {ACCOUNT}" if host else "KUBERNETES_SERVICE_HOST is not set"
        tried.append(f"in-cluster: {missing}")
    wanted = (
        "Kubernetes configuration" if context is None else f"kubeconfig with context {context!r}"
    )
    places = "".join(f"\n  - {place}" for place in tried)
    raise ConfigError(
        f"found no {wanted}. Looked for:{places}\n"
        f"Set KUBECONFIG, or pass kubeconfig=... or a client. {_DEMO}"
    )


def _existing(paths: str) -> tuple[str, ...]:
    expanded = (os.path.expanduser(path) for path in paths.split(os.pathsep) if path)
    return tuple(path for path in expanded if os.path.isfile(path))


def named_in(files: KubeconfigFiles, merge: Callable[[str], Any]) -> Named:
    """What the context names: ``files.context``, or the current one of the first file with one.

    ``merge`` is the official client's merger of such files. Raises `ConfigError` if the
    context, its cluster or the server is not there.
    """
    try:
        return _named(files, merge(files.joined))
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - the merger raises what YAML and files do
        problem = harmless(error)
    raise ConfigError(f"cannot use {files}: {problem}")


def harmless(error: Exception) -> str:
    """What is wrong with a kubeconfig, without quoting it: it holds secrets."""
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        return f"line {mark.line + 1} is no YAML"
    if isinstance(error, OSError):
        return f"{error.strerror}: {error.filename}"
    if type(error).__name__ == "ConfigException":
        # "Expected key server in <the whole entry of the file>"
        return str(error).replace("\n", " ").partition(" in ")[0]
    return type(error).__name__


def _plugin_of(merged: Any, context: Any) -> str | None:
    name = context.safe_get("user")
    user = merged["users"].get_with_name(name, safe=True) if name else None
    command = user["user"]["exec"].safe_get("command") if user and "exec" in user["user"] else None
    return None if command is None else str(command)


def _named(files: KubeconfigFiles, merger: Any) -> Named:
    merged = merger.config
    if merged is None:
        raise ConfigError(f"cannot use {files}: there is nothing in it")
    names = [each["name"] for each in merged["contexts"]]
    current = files.context or _current_context(merger.config_files.values())
    if current not in names:
        raise ConfigError(_no_context(files, current, names))
    context = merged["contexts"].get_with_name(current)["context"]
    cluster = merged["clusters"].get_with_name(context["cluster"])["cluster"]
    return Named(
        current,
        without_password(cluster["server"]),
        _plugin_of(merged, context),
        str(context.safe_get("namespace") or ""),
    )


def _current_context(configs: Iterable[Any]) -> str:
    """As kubectl has it; the official client takes the last one, or only looks at one file."""
    for config in configs:
        if found := config.get("current-context"):
            return str(found)
    return ""


def _no_context(files: KubeconfigFiles, wanted: str, names: list[str]) -> str:
    has = ", ".join(sorted(names)) or "none"
    if not wanted:
        return f"{files} names no current-context. Pass context=...; it has: {has}"
    return f"{files} has no context {wanted!r}; it has: {has}"
