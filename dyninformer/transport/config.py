"""Where the settings of a connection come from: a client of the caller's, files, or a pod."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dyninformer import __version__
from dyninformer.checked import checked_text, wrong
from dyninformer.errors import ConfigError, UnreachableError
from dyninformer.threads import since_boot
from dyninformer.transport.impersonation import Pairs, impersonation_headers
from dyninformer.transport.plain import PlainConfiguration, plain_configuration
from dyninformer.transport.plugins import RUNS, PluginRuns
from dyninformer.transport.requests import without_password

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
_BETWEEN_REFRESHES: Final = 5.0  # seconds
_POD_NAMESPACE = ACCOUNT.with_name("namespace")
_AS = ("as", "as-uid", "as-groups", "as-user-extra")
_TLS = ("certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify")
_OVERRIDDEN = "as the command line has it"
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
        return ", ".join(self.paths) or "no kubeconfig"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What is taken instead of what a kubeconfig says: kubectl's flags of the same names.

    Paths are those of files, from where this process is. With a ``token`` nothing else of the
    user's is shown to the server: no certificate that it would believe before the token.
    """

    cluster: str = ""
    user: str = ""
    server: str = ""
    tls_server_name: str = ""
    certificate_authority: str = ""
    insecure_skip_tls_verify: bool = False
    token: str = field(default="", repr=False)
    client_certificate: str = ""
    client_key: str = ""
    as_user: str = ""
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()

    def of_cluster(self, cluster: Fields) -> Fields:
        """The entry of a cluster, with these in place of its own."""
        found = dict(cluster)
        if self.server:
            found["server"] = self.server
            found.pop("tls-server-name", None)
        if self.tls_server_name:
            found["tls-server-name"] = self.tls_server_name
        if self.certificate_authority or self.insecure_skip_tls_verify:
            for name in ("certificate-authority", "certificate-authority-data"):
                found.pop(name, None)
            found["insecure-skip-tls-verify"] = self.insecure_skip_tls_verify
        if self.certificate_authority:
            found["certificate-authority"] = _absolute(self.certificate_authority)
        if self.server and "://" not in self.server:  # as kubectl completes it
            secured = any(found.get(name) for name in _TLS)
            found["server"] = f"{'https' if secured else 'http'}://{self.server}"
        return found

    def of_user(self, user: Fields) -> Fields:
        """The entry of a user, with these in place of its own."""
        found = dict(user)
        if self.token:
            found = {name: value for name, value in user.items() if name in _AS}
            found["token"] = self.token
        for name, path in (
            ("client-certificate", self.client_certificate),
            ("client-key", self.client_key),
        ):
            if path:
                found.pop(f"{name}-data", None)
                found[name] = _absolute(path)
        return found

    def impersonation(self, user: Fields) -> Pairs:
        """Whom to act as: those named here, else in the user's entry."""
        if self.as_user or self.as_uid or self.as_groups:
            return impersonation_headers(self.as_user, uid=self.as_uid, groups=self.as_groups)
        extra = user.get("as-user-extra")
        return impersonation_headers(
            str(user.get("as") or ""),
            uid=str(user.get("as-uid") or ""),
            groups=[str(each) for each in user.get("as-groups") or ()],
            extra=extra if isinstance(extra, dict) else None,
        )


NO_OVERRIDES = Overrides()


@dataclass(frozen=True, slots=True)
class Named:
    """What a context names. It stays, whatever becomes of the current context meanwhile."""

    context: str
    server: str
    plugin: str | None
    """The command of the user's credential plugin, if there is one."""
    namespace: str
    """The namespace that the context is in, "" if it names none."""
    cluster: Any
    """The name of its entry, None if there is none."""
    user: Any
    verified: bool
    """The server's certificate is looked at."""
    impersonation: Pairs


def doubt(host: str, *, verified: bool) -> str:
    """What to tell people of a connection before they trust it; "" if there is nothing."""
    if verified or not host.lower().startswith("https:"):
        return ""
    return (
        f"the certificate of {host} is not verified: anybody on the way there can read "
        "along, and take the credentials. Name its certificate-authority instead of "
        "insecure-skip-tls-verify."
    )


def find_configuration(
    kubeconfig: str | os.PathLike[str] | None,
    context: str | None,
    *,
    environment: Mapping[str, str],
    overrides: Overrides = NO_OVERRIDES,
    in_a_pod: bool = True,
) -> KubeconfigFiles | InCluster:
    """Where the configuration is: ``kubeconfig``, $KUBECONFIG, ~/.kube/config, in-cluster.

    Where there is none, a server among the ``overrides`` is enough. Without ``in_a_pod`` a
    kubeconfig is wanted: its contexts are.

    Raises `ConfigError`, which lists where it was looked for.
    """
    if context is not None:
        checked_text("context", context, "the name of a context of the kubeconfig")
    if kubeconfig is not None:
        if not isinstance(kubeconfig, str | os.PathLike):
            raise wrong("kubeconfig", kubeconfig, "the path of a file")
        named = os.fspath(kubeconfig)
        if files := _existing(named):
            return KubeconfigFiles(files, context)
        raise ConfigError(f"no kubeconfig at {os.fspath(kubeconfig)}: {_absent(named)}. {_DEMO}")
    tried = []
    listed = environment.get("KUBECONFIG")
    if listed:
        tried.append(f"$KUBECONFIG ({listed}): {_absent(listed)}")
    else:
        listed = os.path.join("~", ".kube", "config")
        tried += ["$KUBECONFIG: not set", f"{listed}: {_absent(listed)}"]
    files = _existing(listed)
    if files:
        return KubeconfigFiles(files, context)
    if context is None and overrides.server:
        return KubeconfigFiles(())
    if context is None and in_a_pod:
        host = environment.get("KUBERNETES_SERVICE_HOST")
        port = environment.get("KUBERNETES_SERVICE_PORT")
        if host and port and ACCOUNT.is_file():
            return InCluster(
                f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
            )
        missing = f"no {ACCOUNT}" if host else "KUBERNETES_SERVICE_HOST is not set"
        tried.append(f"in-cluster: {missing}")
    wanted = "Kubernetes configuration" if in_a_pod else "kubeconfig"
    if context is not None:
        wanted = f"kubeconfig with context {context!r}"
    places = "".join(f"\n  - {place}" for place in tried)
    raise ConfigError(
        f"found no {wanted}. Looked for:{places}\n"
        f"Set KUBECONFIG, or pass kubeconfig=... or a client. {_DEMO}"
    )


def _existing(paths: str) -> tuple[str, ...]:
    return tuple(path for path in _expanded(paths) if os.path.isfile(path))


def _expanded(paths: str) -> list[str]:
    return [os.path.expanduser(path) for path in paths.split(os.pathsep) if path]


def _absent(paths: str) -> str:
    """Why there is nothing to be read: another user's home, say, may not be looked into."""
    for path in _expanded(paths):
        try:
            os.stat(path)
        except PermissionError:
            return "this user may not look there"
        except (OSError, ValueError):
            continue
        return "not an ordinary file"
    return "no such file"


def named_in(files: KubeconfigFiles, overrides: Overrides = NO_OVERRIDES) -> Named:
    """What the context names: ``files.context``, or the current one of the first file with one.

    Only files are read, and no plugin run. Raises `ConfigError` if the context, its cluster or
    the server is not there.
    """
    try:
        return _named(files, overrides, [_read(path) for path in files.paths])
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - YAML and files raise what they like
        problem = harmless(error)
    raise ConfigError(f"cannot use {files}: {problem}")


def contexts_in(files: KubeconfigFiles) -> dict[str, str]:
    """The names of all contexts, each with the address of its server, "" if it names none.

    So is what cannot be read of one of them: who asks for that one is told, and not the others.
    Raises `ConfigError` if a file is no kubeconfig.
    """
    try:
        configs = [_read(path) for path in files.paths]
        clusters = _entries(configs, "clusters", "cluster", files)
        contexts = _entries(configs, "contexts", "context", files)
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - YAML and files raise what they like
        raise ConfigError(f"cannot use {files}: {harmless(error)}") from None
    return {str(name): _address(each, clusters) for name, each in contexts.items()}


def _address(context: Fields, clusters: Mapping[str, Fields]) -> str:
    try:
        return without_password(str(clusters.get(context["cluster"], {}).get("server") or ""))
    except (KeyError, TypeError, ValueError):  # no name, or no URL: https://[HOST]:6443, say
        return ""


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
        # libyaml's is ten times as fast, and as safe, and not everywhere.
        found = yaml.load(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    if not found:
        raise ConfigError(f"cannot use {path}: there is nothing in it")
    return _fields(found, path)


def _named(files: KubeconfigFiles, overrides: Overrides, configs: list[Fields]) -> Named:
    contexts = _entries(configs, "contexts", "context", files)
    current = files.context or _current_context(configs)
    if current not in contexts and (files.context or not (overrides.server or overrides.cluster)):
        raise ConfigError(_no_context(files, current, list(contexts)))
    context = contexts.get(current, {})
    clusters = _entries(configs, "clusters", "cluster", files)
    users = _entries(configs, "users", "user", files)
    for kind, name, there in (
        ("cluster", overrides.cluster, clusters),
        ("user", overrides.user, users),
    ):
        if name and name not in there:
            raise ConfigError(f"{files} has no {kind} {name!r}; it has: {_listed(list(there))}")
    own = clusters.get(overrides.cluster or context.get("cluster"))
    cluster = overrides.of_cluster(own or {})
    if not cluster.get("server"):
        missing = "no cluster that is there" if own is None else "a cluster without a server"
        raise ConfigError(f"cannot use {files}: its context {current!r} names {missing}")
    try:
        address = without_password(str(cluster["server"]))
    except ValueError:
        raise ConfigError(
            f"cannot use {files}: with its context {current!r} the server's address is no URL"
        ) from None
    user_name = overrides.user or context.get("user")
    user = overrides.of_user(users.get(user_name, {}))
    plugin = _fields(user.get("exec") or {}, files).get("command")
    return Named(
        current,
        address,
        None if plugin is None else str(plugin),
        str(context.get("namespace") or ""),
        overrides.cluster or context.get("cluster"),
        user_name,
        not cluster.get("insecure-skip-tls-verify"),
        overrides.impersonation(user),
    )


def _overridden(files: KubeconfigFiles, overrides: Overrides, named: Named) -> Any:
    """What the context names as the official client takes it, with the overrides in their places.

    The files are read here: its own reader takes 35 ms for one of fifty contexts, and each context
    would read them again.
    """
    node = official().config.kube_config.ConfigNode
    parts: dict[str, Any] = {"current-context": _OVERRIDDEN}
    for kind, name, changed in (
        ("cluster", named.cluster, overrides.of_cluster),
        ("user", named.user, overrides.of_user),
    ):
        own, directory = _first(files, kind, name)
        fields = {"name": _OVERRIDDEN, kind: changed(own)}
        # A path there: what the file says of other files is relative to where it is.
        path = os.path.join(directory, "config") if directory else None
        parts[f"{kind}s"] = [node(_OVERRIDDEN, fields, path)]
    context = {"cluster": _OVERRIDDEN, "user": _OVERRIDDEN}
    parts["contexts"] = [{"name": _OVERRIDDEN, "context": context}]
    return node(str(files), parts)


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


def _first(files: KubeconfigFiles, kind: str, name: str | None) -> tuple[Fields, str]:
    """The first entry of a name, and the directory of its file."""
    for path in files.paths:
        entries = _entries([_read(path)], f"{kind}s", kind, files)
        if name in entries:
            return entries[name], os.path.dirname(os.path.abspath(path))
    return {}, ""


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
    if not wanted:
        return f"{files} names no current-context. Pass context=...; it has: {_listed(names)}"
    return f"{files} has no context {wanted!r}; it has: {_listed(names)}"


def _listed(names: list[Any]) -> str:
    return ", ".join(sorted(map(str, names))) or "none"


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


class _PluginFailedError(UnreachableError):
    """It is the plugin that has failed, and not what else a context names."""


# The official client writes the whole file anew when a token was refreshed: one at a time, and the
# next reads what that has written.
_WRITING: Final = PluginRuns(1)


class Given:
    """A client of the caller's; it and its Configuration are read, never changed.

    Not for import.
    """

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
        self.verified = bool(client.configuration.verify_ssl)
        self.impersonation: Pairs = ()  # the client's own headers say it

    def __str__(self) -> str:
        return "a client that was given"

    def again(self) -> Given:
        """The same client, for another connection."""
        return Given(self._dynamic or self._api)

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
    """Kubeconfig files, or the service account of a pod. Not for import."""

    def __init__(
        self, place: KubeconfigFiles | InCluster, overrides: Overrides = NO_OVERRIDES
    ) -> None:
        self._place: KubeconfigFiles | InCluster = place
        self._overrides = overrides
        self._plugin: str | None = None
        self._named: Named | None = None
        if isinstance(place, KubeconfigFiles):
            # The official loader runs the plugin as soon as it loads.
            self._named = named = named_in(place, overrides)
            self.host, self._plugin = named.server, named.plugin
            self.namespace = named.namespace
            self._place = replace(place, context=named.context)
            self.verified, self.impersonation = named.verified, named.impersonation
        else:
            for kind, name in (("cluster", overrides.cluster), ("user", overrides.user)):
                if name:
                    raise ConfigError(f"there is no kubeconfig that could have a {kind} {name!r}")
            self.host, self.namespace = place.host, place.namespace
            self.verified = not overrides.insecure_skip_tls_verify
            self.impersonation = overrides.impersonation({})
        self._loaded: Configuration | None = None

    def __str__(self) -> str:
        if isinstance(self._place, InCluster):
            return str(self._place)
        if not self._place.paths:
            return "the command line, without a kubeconfig"
        return f"context {self._place.context!r} of {self._place}"

    def again(self) -> Environment:
        """The same files and context, for another connection."""
        return Environment(self._place, self._overrides)

    def load(self) -> None:
        """Read the files, tokens, and certificates; run the credential plugin if there is one."""
        self._loaded = self._read()

    def plain(self) -> PlainConfiguration | None:
        """What the files say now; None if only the official client knows what that means."""
        place, named, overrides = self._place, self._named, self._overrides
        if named is None or isinstance(place, InCluster):
            return None
        try:
            cluster, directory = _first(place, "cluster", named.cluster)
            user, users_directory = _first(place, "user", named.user)
        except Exception:  # noqa: BLE001 - YAML raises what it likes; `load` says what is wrong
            return None
        cluster, user = overrides.of_cluster(cluster), overrides.of_user(user)
        user = {name: value for name, value in user.items() if name not in _AS}
        if user and users_directory != directory:
            return None  # paths of two directories
        return plain_configuration(cluster, user, directory)

    def refreshed(self) -> None:
        """Nothing to do: no other code changes what was loaded."""

    def settings(self, guard: Guard) -> tuple[DynamicClient, Configuration]:
        """A client with what was loaded, and its Configuration."""
        api = self._api(guard)
        return _dynamic_client(api), api.configuration

    def writes_client(self, guard: Guard) -> DynamicClient:
        """Another, with the official client's own connections and retries."""
        from dyninformer.transport.pools import (  # noqa: PLC0415 - one look does without urllib3
            impersonating,
            without_warnings,
        )

        api = self._api(guard)
        rest = api.rest_client
        if self.impersonation:
            rest.pool_manager = impersonating(rest.pool_manager, self.impersonation)
        if not self.verified:
            rest.pool_manager = without_warnings(rest.pool_manager)
        return _dynamic_client(api)

    def _api(self, guard: Guard) -> ApiClient:
        configuration = _copy_of(
            self._loaded or self._read(), lambda hook: _now_and_then(guard(hook))
        )
        api: ApiClient = official().client.ApiClient(configuration)
        api.user_agent = f"dyninformer/{__version__}"
        return api

    def _read(self) -> Configuration:
        named = self._named
        if named is None or not named.plugin:
            return self._loaded_with(self._overrides)
        ran = []

        def read() -> Configuration:
            ran.append(True)
            return self._loaded_with(self._overrides)

        try:
            found, shared = RUNS.load(self._plugin_key(named), read)
        except UnreachableError as error:
            if ran:
                raise
            if isinstance(error, _PluginFailedError):
                raise _PluginFailedError(self._plugin_failed()) from None
            found, shared = RUNS.load(None, read)  # it was something of the other context's own
        return self._with_credentials_of(found) if shared else found

    def _plugin_key(self, named: Named) -> str | None:
        """Contexts of one key have one plugin, called in one way, and show nothing else.

        As the files are now. None if the plugin is told the cluster. The official client runs it
        in the directory of the cluster's file, and takes certificates from there.
        """
        place = self._place
        try:
            assert isinstance(place, KubeconfigFiles)  # noqa: S101 - a pod names no plugin
            _, directory = _first(place, "cluster", named.cluster)
            user, users_directory = _first(place, "user", named.user)
            user = self._overrides.of_user(user)
            if _fields(user.get("exec") or {}, place).get("provideClusterInfo"):
                return None
            said = json.dumps([directory, users_directory, user], sort_keys=True, default=str)
        except Exception:  # noqa: BLE001 - what is wrong is said when they are loaded
            return None
        return hashlib.sha256(said.encode()).hexdigest()

    def _with_credentials_of(self, other: Configuration) -> Configuration:
        """This context's configuration, with what its plugin said to another context of its user.

        The plugin itself is not run: with a token the user's entry is not looked at.
        """
        made = self._loaded_with(replace(self._overrides, token="-"))  # noqa: S106 - it goes at once
        made.api_key = dict(other.api_key)
        made.cert_file, made.key_file = other.cert_file, other.key_file
        renew: Any = other.refresh_api_key_hook
        renewed: Any = None if renew is None else _renewed_with(other, renew)
        made.refresh_api_key_hook = renewed
        return made

    @property
    def _persists(self) -> bool:
        """The official client writes what it was given into the file, as old providers need it."""
        place, named = self._place, self._named
        if named is None or isinstance(place, InCluster):
            return False
        return "auth-provider" in _first(place, "user", named.user)[0]

    def _plugin_failed(self) -> str:
        return (
            f"cannot get credentials for {self.host}: the plugin {self._plugin!r}, named in "
            f"{self._place}, failed. Run it by hand to see why."
        )

    def _loaded_with(self, overrides: Overrides) -> Configuration:
        kubernetes = official()
        configuration: Configuration = kubernetes.client.Configuration()
        try:
            if isinstance(self._place, InCluster):
                kubernetes.config.load_incluster_config(client_configuration=configuration)
                self._override(configuration)
            elif self._named is not None and (overrides != NO_OVERRIDES or not self._persists):
                kubernetes.config.load_kube_config_from_dict(
                    _overridden(self._place, overrides, self._named),
                    client_configuration=configuration,
                    persist_config=False,
                )
            else:
                load = partial(
                    kubernetes.config.load_kube_config,
                    config_file=self._place.joined,
                    context=self._place.context,
                    client_configuration=configuration,
                )
                _WRITING.load(None, load)
        except Exception as error:  # noqa: BLE001 - the loader raises what YAML, JSON and files do
            raise UnreachableError(
                f"cannot read the credentials for {self.host} from {self._place}: {harmless(error)}"
            ) from None  # what it says may quote the file, secrets included
        if self._plugin and not (configuration.api_key or configuration.cert_file):
            raise _PluginFailedError(self._plugin_failed())
        return configuration

    def _override(self, configuration: Configuration) -> None:
        """Take what the command line says instead of what the pod has."""
        said = self._overrides
        if said.token:
            configuration.api_key = {"authorization": f"Bearer {said.token}"}
            configuration.refresh_api_key_hook = None
        if said.certificate_authority:
            configuration.ssl_ca_cert = _absolute(said.certificate_authority)
        if said.insecure_skip_tls_verify:
            configuration.verify_ssl = False
        if said.tls_server_name:
            configuration.tls_server_name = said.tls_server_name
        if said.client_certificate and said.client_key:
            configuration.cert_file = _absolute(said.client_certificate)
            configuration.key_file = _absolute(said.client_key)


def _renewed_with(other: Configuration, renew: Hook) -> Hook:
    """A hook that has the first configuration renewed, and takes what that has then."""

    def refresh(configuration: Any) -> None:
        copied: Any = copy.copy(other)
        copied.api_key = dict(other.api_key)
        renew(copied)
        configuration.api_key = dict(copied.api_key)

    return refresh


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


def _now_and_then(hook: Hook) -> Hook:
    """The hook, but not for each of the requests that follow each other at once.

    To run it takes a thread, which is a fifth of what the request for a page takes. The official
    ones renew a token five minutes before it expires, and read a pod's once a minute.
    """
    due = float("-inf")

    def refresh(configuration: Configuration) -> None:
        nonlocal due
        now = since_boot()
        if now >= due:
            hook(configuration)
            due = now + _BETWEEN_REFRESHES

    return refresh


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
