"""kubectl's flags for every command: which cluster, as whom, which namespace, and how loudly.

Each may stand before the subcommand, too. Nothing heavy is imported here: `dyninformer --help`
lists them.
"""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, get_args, get_type_hints

import typer

from dyninformer.cli import completion
from dyninformer.cli.errors import WRONG_USAGE, CommandError
from dyninformer.display.text import visible_lines

if TYPE_CHECKING:
    from dyninformer.transport.config import Overrides
    from dyninformer.watching.brief import BriefSource
    from dyninformer.watching.client import Source

_objects_option: Final = partial(typer.Option, rich_help_panel="Which objects")
_cluster_option: Final = partial(typer.Option, rich_help_panel="Which cluster")
_rare_option: Final = partial(_cluster_option, hidden=True)
"""The help of a command leaves it out; that of `dyninformer` itself lists it."""

RARE: Final = (
    "Also, as in kubectl: --as, --server, --token, -v and others, which dyninformer --help lists."
)
_REQUESTS_FROM: Final = 6
_HEADERS_FROM: Final = 7


def duration(text: str | float) -> float:
    """The seconds that an option says."""
    from dyninformer.cli.arguments import seconds  # noqa: PLC0415 - that is heavy

    try:
        return seconds(str(text))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _level(text: str | int) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no level: give a number, as in -v 6") from None


@dataclass(frozen=True, kw_only=True)
class GlobalFlags:
    """What they were given."""

    namespace: Annotated[
        str | None,
        _objects_option(
            "-n",
            "--namespace",
            metavar="NAME",
            help="One, or several with commas; by default that of the context.",
            autocompletion=completion.namespaces,
        ),
    ] = None
    all_namespaces: Annotated[
        bool, _objects_option("-A", "--all-namespaces", help="All namespaces.")
    ] = False
    kubeconfig: Annotated[
        str | None,
        _cluster_option("--kubeconfig", metavar="FILE", help="The kubeconfig file."),
    ] = None
    context: Annotated[
        str | None,
        _cluster_option(
            "--context",
            metavar="NAME",
            help="The kubeconfig's context.",
            autocompletion=completion.contexts,
        ),
    ] = None
    request_timeout: Annotated[
        float,
        _cluster_option(
            "--request-timeout",
            metavar="DURATION",
            help="How long to wait for the first state: 30, 5s or 1m.",
            parser=duration,
        ),
    ] = 30.0
    cluster: Annotated[
        str | None,
        _rare_option(
            "--cluster",
            metavar="NAME",
            help="The kubeconfig's cluster, in place of the context's.",
            autocompletion=completion.clusters,
        ),
    ] = None
    user: Annotated[
        str | None,
        _rare_option(
            "--user",
            metavar="NAME",
            help="The kubeconfig's user, in place of the context's.",
            autocompletion=completion.users,
        ),
    ] = None
    server: Annotated[
        str | None, _rare_option("-s", "--server", metavar="URL", help="The server's address.")
    ] = None
    token: Annotated[
        str | None,
        _rare_option(
            "--token", metavar="TOKEN", help="A bearer token, in place of all that the user has."
        ),
    ] = None
    as_user: Annotated[
        str | None, _rare_option("--as", metavar="USER", help="Act as this user.")
    ] = None
    as_groups: Annotated[
        list[str] | None,
        _rare_option(
            "--as-group", metavar="GROUP", help="Act as one of this group. May be repeated."
        ),
    ] = None
    as_uid: Annotated[
        str | None, _rare_option("--as-uid", metavar="UID", help="Act with this uid.")
    ] = None
    certificate_authority: Annotated[
        str | None,
        _rare_option("--certificate-authority", metavar="FILE", help="Who vouches for the server."),
    ] = None
    client_certificate: Annotated[
        str | None,
        _rare_option("--client-certificate", metavar="FILE", help="Who you are."),
    ] = None
    client_key: Annotated[
        str | None,
        _rare_option("--client-key", metavar="FILE", help="The key of that certificate."),
    ] = None
    tls_server_name: Annotated[
        str | None,
        _rare_option(
            "--tls-server-name", metavar="NAME", help="The name in the server's certificate."
        ),
    ] = None
    insecure_skip_tls_verify: Annotated[
        bool,
        _rare_option("--insecure-skip-tls-verify", help="Do not look at the server's certificate."),
    ] = False
    verbosity: Annotated[
        int,
        _rare_option(
            "-v",
            "--v",
            metavar="LEVEL",
            help="6 shows each request on stderr, 7 and more its headers; never a token.",
            parser=_level,
        ),
    ] = 0

    def __post_init__(self) -> None:
        if self.namespace and self.all_namespaces:
            raise CommandError("give -n or -A, not both", code=WRONG_USAGE)
        if self.certificate_authority and self.insecure_skip_tls_verify:
            raise CommandError(
                "give --certificate-authority or --insecure-skip-tls-verify, not both",
                code=WRONG_USAGE,
            )

    @classmethod
    def given(cls, params: Mapping[str, Any]) -> Self:
        """Those among the parameters of a command."""
        names = {each.name for each in fields(cls)}
        return cls(**{name: each for name, each in params.items() if name in names and each})

    def source(self) -> Source:
        """The server that they mean. Requests are shown as ``-v`` says."""
        from dyninformer.watching.client import Source  # noqa: PLC0415 - it is heavy

        return Source(
            kubeconfig=self.kubeconfig_path, context=self.context, overrides=self._overrides()
        )

    def brief_source(self) -> BriefSource | Source:
        """The same for few requests, and quicker to have, if the kubeconfig is plain."""
        from dyninformer.transport import config  # noqa: PLC0415 - it is heavy
        from dyninformer.watching.brief import BriefSource  # noqa: PLC0415

        overrides = self._overrides()
        place = config.find_configuration(
            self.kubeconfig_path, self.context, environment=os.environ, overrides=overrides
        )
        found = BriefSource.of(config.Environment(place, overrides))
        return found or self.source()

    @property
    def kubeconfig_path(self) -> str | None:
        """The file that was given."""
        return os.path.expanduser(self.kubeconfig) if self.kubeconfig else None

    def _overrides(self) -> Overrides:
        from dyninformer.transport.config import Overrides  # noqa: PLC0415 - it is heavy

        if (self.as_groups or self.as_uid) and not self.as_user:
            raise CommandError("--as-group and --as-uid are for --as USER", code=WRONG_USAGE)
        _set_up_log(self.verbosity)
        return Overrides(
            cluster=self.cluster or "",
            user=self.user or "",
            server=self.server or "",
            tls_server_name=self.tls_server_name or "",
            certificate_authority=self.certificate_authority or "",
            insecure_skip_tls_verify=self.insecure_skip_tls_verify,
            token=self.token or "",
            client_certificate=self.client_certificate or "",
            client_key=self.client_key or "",
            as_user=self.as_user or "",
            as_uid=self.as_uid or "",
            as_groups=tuple(self.as_groups or ()),
        )


def parameters(flags: type[GlobalFlags]) -> list[inspect.Parameter]:
    """The flags as the parameters of a command."""
    hints = get_type_hints(flags, include_extras=True)
    return [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=each.default,
            annotation=hints[each.name],
        )
        for each in fields(flags)
    ]


def spellings() -> dict[str, bool]:
    """Each spelling of a flag, and whether a value follows it.

    >>> spellings()["-n"], spellings()["--all-namespaces"]
    (True, False)
    """
    found = {}
    for each in parameters(GlobalFlags):
        kind, option = get_args(each.annotation)
        names = (option.default, *(option.param_decls or ()))  # the first is where typer has it
        found.update(dict.fromkeys(names, kind is not bool))
    return found


def _set_up_log(verbosity: int) -> None:
    """Print requests and the server's warnings on stderr, and nothing else of the log.

    A command reports everything else itself.
    """
    logging.getLogger("dyninformer").addHandler(logging.NullHandler())
    logging.getLogger("dyninformer.server_warnings").handlers = [_WarningsOnStderr()]
    requests = logging.getLogger("dyninformer.requests")
    shown = verbosity >= _REQUESTS_FROM
    requests.setLevel(logging.DEBUG if shown else logging.NOTSET)
    requests.getChild("headers").setLevel(
        logging.DEBUG if verbosity >= _HEADERS_FROM else logging.INFO
    )
    requests.handlers = [_OnStderr()] if shown else []


class _OnStderr(logging.Handler):
    """A line with its time; nothing that a server says can act on a terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print it."""
        when = logging.Formatter("%(asctime)s", "%H:%M:%S").formatTime(record, "%H:%M:%S")
        text = f"{when}.{int(record.msecs):03d} {record.getMessage()}"
        typer.echo(visible_lines(text), err=True)


class _WarningsOnStderr(logging.Handler):
    """A warning of the server, as kubectl prints it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print it."""
        typer.echo(f"Warning: {visible_lines(vars(record)['warning'])}", err=True)
