"""Where the settings of a connection come from: a client of the caller's, files, or a pod."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dyninformer import __version__
from dyninformer.errors import ConfigError, UnreachableError
from dyninformer.watching.failures import without_password

if TYPE_CHECKING:
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.dynamic import DynamicClient


Fields = dict[str, Any]

Hook: TypeAlias = Callable[[Any], None]
"""A Configuration's ``refresh_api_key_hook``."""
Guard: TypeAlias = Callable[[Hook], Hook]

_NO_CACHE_FILE = os.path.join(os.devnull, "discovery")
"""A path that cannot exist: official discovery would leave a file that all users can read."""

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


class Given:
    """A client of the caller's; it and its Configuration are read, never changed."""

    def __init__(self, client: DynamicClient | ApiClient) -> None:
        kubernetes = official()
        self._dynamic: DynamicClient | None = None
        if isinstance(client, kubernetes.dynamic.DynamicClient):
            self._dynamic = client
            client = client.client
        if not isinstance(client, kubernetes.client.ApiClient):
            raise ConfigError(
                "client must be a kubernetes.dynamic.DynamicClient or a "
                f"kubernetes.client.ApiClient, not {type(client).__name__}"
            )
        self._api: ApiClient = client
        self._keys: dict[str, str] = {}
        self._private: Configuration | None = None
        self.host = without_password(client.configuration.host)
        self.namespace = ""  # a client does not know its context

    def __str__(self) -> str:
        return "a client that was given"

    def load(self) -> None:
        """Nothing to read: the client has it."""

    def refreshed(self) -> None:
        """Tokens that the caller has put into its Configuration meanwhile."""
        keys = dict(self._api.configuration.api_key)
        private = self._private
        if private is not None and keys != self._keys:
            self._keys = keys
            private.api_key.update(keys)

    def settings(self, guard: Guard) -> tuple[DynamicClient, Configuration]:
        """The client, and a copy of its Configuration."""
        self._keys = dict(self._api.configuration.api_key)
        configuration = _copy_of(self._api.configuration, guard)
        self._private = configuration
        return self._dynamic or _dynamic_client(self._api), configuration

    def writes_client(self, guard: Guard) -> DynamicClient:
        """His own, or one around it."""
        del guard
        return self._dynamic or _dynamic_client(self._api)


class Environment:
    """Kubeconfig files, or the service account of a pod."""

    def __init__(self, place: KubeconfigFiles | InCluster) -> None:
        self._place: KubeconfigFiles | InCluster = place
        self._plugin: str | None = None
        if isinstance(place, KubeconfigFiles):
            named = named_in(place)  # the official loader runs the plugin as soon as it loads
            self.host, self._plugin = named.server, named.plugin
            self.namespace = named.namespace
            self._place = replace(place, context=named.context)
        else:
            self.host, self.namespace = place.host, place.namespace
        self._loaded: Configuration | None = None

    def __str__(self) -> str:
        if isinstance(self._place, InCluster):
            return str(self._place)
        return f"context {self._place.context!r} of {self._place}"

    def load(self) -> None:
        """Read the files, tokens, and certificates; run the credential plugin if there is one."""
        self._loaded = self._read()

    def refreshed(self) -> None:
        """Nothing to do: no other code changes what was loaded."""

    def settings(self, guard: Guard) -> tuple[DynamicClient, Configuration]:
        """A client with what was loaded, and its Configuration."""
        api = self._api(guard)
        return _dynamic_client(api), api.configuration

    def writes_client(self, guard: Guard) -> DynamicClient:
        """Another, with the official client's own connections and retries."""
        return _dynamic_client(self._api(guard))

    def _api(self, guard: Guard) -> ApiClient:
        api: ApiClient = official().client.ApiClient(_copy_of(self._loaded or self._read(), guard))
        api.user_agent = f"dyninformer/{__version__}"
        return api

    def _read(self) -> Configuration:
        kubernetes = official()
        configuration: Configuration = kubernetes.client.Configuration()
        try:
            if isinstance(self._place, InCluster):
                kubernetes.config.load_incluster_config(client_configuration=configuration)
            else:
                kubernetes.config.load_kube_config(
                    config_file=self._place.joined,
                    context=self._place.context,
                    client_configuration=configuration,
                )
        except Exception as error:  # noqa: BLE001 - the loader raises what YAML, JSON and files do
            raise UnreachableError(
                f"cannot read the credentials for {self.host} from {self._place}: {harmless(error)}"
            ) from None  # what it says may quote the file, secrets included
        if self._plugin and not (configuration.api_key or configuration.cert_file):
            raise UnreachableError(
                f"cannot get credentials for {self.host}: the plugin {self._plugin!r}, named in "
                f"{self._place}, failed. Run it by hand to see why."
            )
        return configuration


def official() -> Any:
    """The official client: its import costs 0.25 s and 45 MB, so it comes on first use."""
    import kubernetes.client.exceptions  # noqa: PLC0415 - see above
    import kubernetes.config  # noqa: PLC0415
    import kubernetes.dynamic.discovery  # noqa: PLC0415

    return kubernetes


def _dynamic_client(api: ApiClient) -> DynamicClient:
    """A `DynamicClient` that asks nothing before it must."""
    found: DynamicClient = official().dynamic.DynamicClient(api, discoverer=_LateDiscovery)
    return found


def _copy_of(configuration: Configuration, guard: Guard) -> Configuration:
    """A copy whose credentials are its own.

    Shallow: a deep one opens log files again and sets log levels (client 29).
    """
    private = copy.copy(configuration)
    private.api_key = dict(configuration.api_key)
    private.api_key_prefix = dict(configuration.api_key_prefix)
    if configuration.refresh_api_key_hook is not None:
        private.refresh_api_key_hook = guard(_on_a_copy(configuration.refresh_api_key_hook))
    return private


def _on_a_copy(hook: Hook) -> Hook:
    """The hook, but run on a copy: the official ones put themselves in the place of ours."""
    name = "refresh_api_key_hook"

    def refresh(configuration: Configuration) -> None:
        nonlocal hook
        copied: Any = copy.copy(configuration)
        copied.api_key = dict(configuration.api_key)
        copied.refresh_api_key_hook = hook
        hook(copied)
        found = vars(copied)
        hook = found[name] or hook
        vars(configuration).update({key: found[key] for key in found if key != name})

    return refresh


class _LateDiscovery:
    """Discovery on first use; the official ones ask in their constructor."""

    def __init__(self, dynamic: DynamicClient, cache_file: str | None) -> None:
        del cache_file
        self._dynamic = dynamic
        self._found: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._discoverer(), name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._discoverer())

    def _discoverer(self) -> Any:
        if self._found is None:
            self._found = official().dynamic.discovery.LazyDiscoverer(self._dynamic, _NO_CACHE_FILE)
        return self._found
