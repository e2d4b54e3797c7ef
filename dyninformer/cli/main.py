"""The command's entry point, and its list of subcommands."""

from __future__ import annotations

import gc
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from typing import Annotated, Any, Final, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from dyninformer import __version__
from dyninformer.cli import completion
from dyninformer.cli.errors import WRONG_USAGE, CommandError, reported, silent_without_reader
from dyninformer.cli.global_flags import RARE, GlobalFlags, parameters, spellings
from dyninformer.cli.plain_values import take_as_they_come

_EPILOG = (
    "Exit codes: 0 done; 1 not met, not found, or failed; 2 wrong usage; 3 the server cannot be "
    "reached or refuses; 4 out of time; 130 interrupted."
)


_ASSIGNED: Final = re.compile(r"^(-[A-Za-z])=(?=.)")


def in_plain_words(parameters: Any) -> Any:
    """The same parameters: a flag and an argument have no type that one need know."""
    for each in parameters:
        if getattr(each, "is_flag", False) or each.param_type_name == "argument":
            each.display_type_rich = lambda ctx: None  # noqa: ARG005
    return parameters


@dataclass(frozen=True)
class Subcommand:
    """A line in the list of commands; its module has a function ``command``."""

    module: str
    help: str
    asks: bool = True
    """It asks a cluster, which flags may name; else it has an API server of its own."""


COMMANDS = {
    "get": Subcommand("get", "Show objects, once or as they change."),
    "watch": Subcommand("watch", "Show what changes, as it changes."),
    "wait": Subcommand("wait", "Wait until objects meet a condition."),
    "count": Subcommand("count", "Count objects by what a path finds in them, live."),
    "tree": Subcommand("tree", "Show what owns an object, and what it owns."),
    "doctor": Subcommand("doctor", "Say why a watch does not work."),
    "record": Subcommand("record", "Keep what happens in a file, to be played again."),
    "replay": Subcommand("replay", "Play a recording on an API server of its own.", asks=False),
    "history": Subcommand(
        "history", "Show what became of an object, from a recording.", asks=False
    ),
    "serve": Subcommand("serve", "Serve YAML and JSON files as a read-only API.", asks=False),
    "demo": Subcommand("demo", "See it work, on a cluster in this process.", asks=False),
    "resources": Subcommand("resources", "List what the server has, with every spelling."),
}


@contextmanager
def advising(ctx: Any) -> Iterator[None]:
    """Suggest an option that is spelled like one that does not exist.

    typer suggests what is hardly alike: --as for --raw.
    """
    try:
        yield
    except typer.TyperException as error:
        if not hasattr(error, "possibilities"):
            raise
        from dyninformer.cli import hints  # noqa: PLC0415 - only a wrong usage needs it

        name = getattr(error, "option_name", "")
        ctx.fail(hints.no_such_option(error.message, name, ctx.command.get_params(ctx)))


class PlainCommand(TyperCommand):
    """A command whose help says nothing of how Python keeps a value."""

    def get_params(self, ctx: Any) -> Any:
        """All parameters, ``--help`` too."""
        found = in_plain_words(super().get_params(ctx))
        take_as_they_come(found)
        return found

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The arguments as they are described, not in braces."""
        found = ["[OPTIONS]"]
        for each in self.get_params(ctx):
            if each.param_type_name == "argument":
                name = each.display_name_raw
                found.append(name if each.required else f"[{name}]")
        return found

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """``-o=yaml`` is ``-o yaml``, as in kubectl."""
        with advising(ctx):
            return super().parse_args(ctx, [_ASSIGNED.sub(r"\1", each) for each in args])


class LazyGroup(TyperGroup):
    """Imports a subcommand's module only when it is called, so that ``--help`` costs little."""

    def get_params(self, ctx: Any) -> Any:
        """All parameters, ``--help`` too."""
        found = in_plain_words(super().get_params(ctx))
        take_as_they_come(found)
        return found

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Options that say which cluster and which namespace may stand before the subcommand."""
        moved = options_behind_command(args)
        found = COMMANDS.get(moved[0]) if moved and moved != args else None
        if found is not None and not found.asks:
            with reported():
                flag = args[0].partition("=")[0]
                raise CommandError(
                    f"{moved[0]} has an API server of its own: leave {flag} out", code=WRONG_USAGE
                )
        with advising(ctx):
            return super().parse_args(ctx, moved)

    def list_commands(self, ctx: Any) -> list[str]:
        """The subcommands, in the order in which one meets them."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        """What the list of commands shows: a name and a line of help."""
        del ctx
        found = COMMANDS.get(cmd_name)
        return TyperCommand(cmd_name, help=found.help) if found else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called, with its arguments."""
        if args and args[0] in COMMANDS:
            return args[0], load_command(args[0]), args[1:]
        if ctx.resilient_parsing:  # a shell asks what may follow
            return super().resolve_command(ctx, args)
        from dyninformer.cli import hints  # noqa: PLC0415 - only a wrong usage needs it

        return ctx.fail(hints.no_such_command(args[0], COMMANDS))


def options_behind_command(args: list[str]) -> list[str]:
    """The same words, with the options of a command that stand before it moved behind it.

    >>> options_behind_command(["-n", "prod", "--context=eu", "get", "cert"])
    ['get', '-n', 'prod', '--context=eu', 'cert']
    >>> options_behind_command(["--version"])
    ['--version']
    """
    if not args or not args[0].startswith("-"):
        return args
    flags = spellings()
    at = 0
    while at < len(args) and args[at].startswith("-"):
        name, assigned, _ = args[at].partition("=")
        if name in flags:
            at += 2 if flags[name] and not assigned else 1
        elif not name.startswith("--") and flags.get(name[:2]):  # -nprod
            at += 1
        else:
            return args
    if at >= len(args):
        return args
    return [args[at], *args[:at], *args[at + 1 :]]


def load_command(name: str) -> Any:
    """The whole subcommand, from its module; its failures are reported as `errors` says."""
    command: Callable[..., None] = import_module(f"dyninformer.cli.{COMMANDS[name].module}").command

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        with reported():
            command(*args, **kwargs)

    own = typer.Typer(add_completion=False, rich_markup_mode="markdown")
    asks = any(each.name == "verbosity" for each in inspect.signature(command).parameters.values())
    own.command(name, cls=PlainCommand, epilog=RARE if asks else None)(run)
    return typer.main.get_command(own)


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"dyninformer {__version__}")
        raise typer.Exit


def _global(version: bool = False, **flags: object) -> None:
    """Watch any Kubernetes resource: live, and without forgetting."""
    del version, flags  # what stands before a subcommand is that one's, see `LazyGroup`


def _signature() -> inspect.Signature:
    """``--version``, and all that may stand before a subcommand."""
    shown = typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    version = inspect.Parameter(
        "version",
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, shown],
    )
    flags = [
        each.replace(annotation=Annotated[get_args(each.annotation)[0], listed(each)])
        for each in parameters(GlobalFlags)
    ]
    return inspect.Signature([version, *flags])


def listed(flag: inspect.Parameter) -> Any:
    """The option, as it is listed before all commands."""
    found = copy(get_args(flag.annotation)[1])
    found.hidden, found.rich_help_panel = False, "Of every command that asks a cluster"
    found.show_default = False
    return found


_global.__signature__ = _signature()  # type: ignore[attr-defined]
app.callback()(_global)


def main() -> None:
    """Run the command line, to the end of the process."""
    try:
        with silent_without_reader():
            if not completion.answered():
                app()
    finally:
        # All memory goes with the process. Without this the interpreter looks for cycles in it
        # first, which takes an eighth of the CPU of `get` of 2,000 objects.
        gc.freeze()


if __name__ == "__main__":
    main()
