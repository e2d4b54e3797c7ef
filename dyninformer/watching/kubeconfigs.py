"""Where a configuration is looked for when no client is given, and what to say if none is there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dyninformer.errors import ConfigError
from dyninformer.watching.failures import without_password

__all__ = ["InCluster", "KubeconfigFiles", "Named", "find_configuration", "harmless", "named_in"]

Fields = dict[str, Any]

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


def named_in(files: KubeconfigFiles) -> Named:
    """What the context names: ``files.context``, or the current one of the first file with one.

    Only files are read, and no plugin run. Raises `ConfigError` if the context, its cluster or
    the server is not there.
    """
    try:
        return _named(files, [_read(path) for path in files.paths])
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - YAML and files raise what they like
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


def _read(path: str) -> Fields:
    import yaml  # noqa: PLC0415 - not needed where a client is given

    with open(path, encoding="utf-8") as file:
        found = yaml.safe_load(file)
    if not found:
        raise ConfigError(f"cannot use {path}: there is nothing in it")
    return _fields(found, path)


def _named(files: KubeconfigFiles, configs: list[Fields]) -> Named:
    contexts = _entries(configs, "contexts", "context", files)
    current = files.context or _current_context(configs)
    if current not in contexts:
        raise ConfigError(_no_context(files, current, list(contexts)))
    context = contexts[current]
    cluster = _entries(configs, "clusters", "cluster", files).get(context.get("cluster"))
    if not cluster or not cluster.get("server"):
        missing = "no cluster that is there" if cluster is None else "a cluster without a server"
        raise ConfigError(f"cannot use {files}: its context {current!r} names {missing}")
    user = _entries(configs, "users", "user", files).get(context.get("user"), {})
    plugin = _fields(user.get("exec") or {}, files).get("command")
    return Named(
        current,
        without_password(str(cluster["server"])),
        None if plugin is None else str(plugin),
        str(context.get("namespace") or ""),
    )


def _entries(
    configs: list[Fields], kind: str, part: str, files: KubeconfigFiles
) -> dict[Any, Fields]:
    """The ``part`` of each entry, by the entry's name; of the files, the first one counts."""
    found: dict[Any, Fields] = {}
    for config in configs:
        for entry in config.get(kind) or ():
            named = _fields(entry, files)
            found.setdefault(named.get("name"), _fields(named.get(part) or {}, files))
    return found


def _fields(value: object, files: object) -> Fields:
    if not isinstance(value, dict):
        raise ConfigError(f"cannot use {files}: it is YAML, but no kubeconfig")
    return value


def _current_context(configs: list[Fields]) -> str:
    """As kubectl has it; the official client takes the last one, or only looks at one file."""
    for config in configs:
        if found := config.get("current-context"):
            return str(found)
    return ""


def _no_context(files: KubeconfigFiles, wanted: str, names: list[Any]) -> str:
    has = ", ".join(sorted(map(str, names))) or "none"
    if not wanted:
        return f"{files} names no current-context. Pass context=...; it has: {has}"
    return f"{files} has no context {wanted!r}; it has: {has}"
