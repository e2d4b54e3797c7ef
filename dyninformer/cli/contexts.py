"""``--contexts`` and ``--all-contexts``: one command in several clusters at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeAlias, TypeVar

import typer

from dyninformer.cli.connection import LOOK_SECONDS, Cluster, Target
from dyninformer.cli.errors import UNREACHABLE, WRONG_USAGE, CommandError, exit_code, in_a_shell
from dyninformer.cli.terminal import say
from dyninformer.display.text import visible, visible_lines
from dyninformer.threads import Bell

T = TypeVar("T")
Heard: TypeAlias = Callable[[], None]
Targets: TypeAlias = dict[str, Target]

SILENT_SECONDS: Final = 3.0
"""Clusters that have said nothing are not waited for, once others are done and nothing has come
from any for so long."""


def targets(target: Target) -> Targets:
    """What a command is about in each context that is meant, by the context's name.

    Raises:
        ConfigError: No context fits.
    """
    from dyninformer.fleet.contexts import Contexts  # noqa: PLC0415 - one cluster does without

    if target.context:
        raise CommandError("give --context or --contexts, not both", code=WRONG_USAGE)
    for name in ("server", "cluster", "user", "token", "tls_server_name"):
        if getattr(target, name):
            flag = name.replace("_", "-")
            raise CommandError(f"--{flag} is of one cluster, not of several", code=WRONG_USAGE)
    patterns = [each for word in target.contexts or () for each in filter(None, word.split(","))]
    found = Contexts("*" if target.all_contexts else patterns, target.kubeconfig_path).first()
    if not found:
        raise CommandError("the kubeconfig has no contexts", code=WRONG_USAGE)
    return {
        name: replace(target, context=name, contexts=None, all_contexts=False) for name in found
    }


@dataclass
class Outcomes(Generic[T]):
    """What came of a piece of work in each context, in the order of the kubeconfig."""

    done: dict[str, T] = field(default_factory=dict)
    failed: dict[str, Exception] = field(default_factory=dict)

    @property
    def code(self) -> int:
        """The exit code: the highest that any cluster has alone; 0 if nothing failed."""
        return max(map(exit_code, self.failed.values()), default=0)

    def say_failures(self) -> None:
        """A line on stderr for each cluster that is left out, with its reason.

        One line for all where what was asked is wrong usage, for one reason.
        """
        reasons = {str(error) for error in self.failed.values()}
        if not self.done and len(reasons) == 1 and self.code == WRONG_USAGE:
            say(f"error: {visible_lines(reasons.pop())}")
            return
        for name, error in self.failed.items():
            say(f"error: {visible(name)}: {visible_lines(in_a_shell(str(error)))}")

    def end(self, code: int = 0) -> None:
        """Exit with the highest code of all, if that is none."""
        if highest := max(self.code, code):
            raise typer.Exit(highest)


def in_each(
    contexts: Mapping[str, Target], work: Callable[[Target, Heard], T], *, silence: bool = True
) -> Outcomes[T]:
    """Do the work in all contexts at a time, each on a thread of its own.

    ``work`` calls what it is given as soon as the cluster has said anything. One that has not is
    left out once the others are done, unless ``silence`` is to be waited for. So it is if none is
    done: there is nothing to be shown without it. And the silence is that of all: as long as
    others still come, so may this one, whose credential plugin may wait for theirs to end.
    """
    bell, news = Bell(), time.monotonic()
    done: dict[str, T] = {}
    failed: dict[str, Exception] = {}
    in_time: dict[str, bool] = {}  # whether it was heard before it was left out: the first decides

    def hear(name: str) -> None:
        nonlocal news
        news = time.monotonic()
        if not in_time.setdefault(name, True):
            raise CommandError("it has spoken too late", code=UNREACHABLE)

    def run(name: str) -> None:
        nonlocal news
        try:
            done[name] = work(contexts[name], lambda: hear(name))
        except Exception as error:  # noqa: BLE001 - told with the cluster's name
            failed[name] = error
        news = time.monotonic()
        bell.ring()

    for name in contexts:
        threading.Thread(
            target=run, args=(name,), name=f"dyninformer in context {name}", daemon=True
        ).start()

    def is_over() -> bool:
        left = [name for name in contexts if name not in done and name not in failed]
        late = silence and done and time.monotonic() - news >= SILENT_SECONDS
        if not left or not late or any(in_time.get(name) for name in left):
            return not left
        spoke = [in_time.setdefault(name, False) for name in left]  # each is asked: all or none
        return not any(spoke)

    while not bell.wait_for(is_over, LOOK_SECONDS):
        pass  # silence rings no bell
    for name in contexts:
        if name not in done and name not in failed:
            failed[name] = CommandError(
                f"it has said nothing for {SILENT_SECONDS:g} s, and the others are shown without "
                f"it; --context {name} waits for it alone",
                code=UNREACHABLE,
            )
    return Outcomes(
        {name: done[name] for name in contexts if name in done and name not in failed},
        {name: failed[name] for name in contexts if name in failed},
    )


@contextmanager
def connected(
    contexts: Mapping[str, Target], prepare: Callable[[str, Cluster], T]
) -> Iterator[Outcomes[T]]:
    """The same with a cluster that stays connected for as long as the command runs."""

    def work(target: Target, heard: Heard) -> tuple[ExitStack, T]:
        with ExitStack() as stack:
            cluster = stack.enter_context(target.connected())
            cluster.discovery.resources()  # who answers this has said something
            heard()
            made = prepare(target.context or "", cluster)
            return stack.pop_all(), made
        raise AssertionError

    found = in_each(contexts, work)
    with ExitStack() as stack:
        for held, _ in found.done.values():
            stack.push(held)
        found.say_failures()
        if not found.done:
            raise typer.Exit(found.code)
        yield Outcomes({name: made for name, (_, made) in found.done.items()}, found.failed)


def lines_of(cluster: str, text: str) -> str:
    """Text that has no columns: each line behind the name of the cluster."""
    return "\n".join(f"{visible(cluster)}\t{line}" for line in text.splitlines())
