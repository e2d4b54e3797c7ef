"""The objects that a live view shows, as rows: those that are held, then those that change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeAlias

from dyninformer.checked import checked_mapping, checked_texts
from dyninformer.display.live.rows import Found
from dyninformer.errors import StoppedError
from dyninformer.frames import types
from dyninformer.frames.selection import (
    Choice,
    ColumnList,
    asked_for,
    chosen_paths,
    gathered,
    is_namespaced,
)
from dyninformer.jsonpath import JSONPath
from dyninformer.lister import check_paths
from dyninformer.store.matching import entries_of
from dyninformer.store.snapshot import Columns, Selector, View
from dyninformer.types import Keys

if TYPE_CHECKING:
    from dyninformer.delivery.stream import ChangedKeys
    from dyninformer.informer import SharedIndexInformer
    from dyninformer.watching.status import InformerStatus

By: TypeAlias = str | Sequence[str]

_COLUMNS: Final = "a mapping from names to paths, such as {'issuer': '.spec.issuerRef.name'}"
BY: Final = "a path such as '.spec.issuerRef.name', or several"
_FIRST_PARTS: Final = ("spec.", "metadata.", "status.")


class Heading(NamedTuple):
    """A column of a live view."""

    name: str
    is_age: bool = False
    """Its cells are times, which are shown as ages."""


Headings: TypeAlias = list[Heading]


class Source:
    """What an informer holds, as rows. In ``with`` it hears what changes. For one thread."""

    def __init__(
        self,
        informer: SharedIndexInformer,
        columns: Columns | None = None,
        selector: Selector | None = None,
        field_selector: Selector | None = None,
        by: By | None = None,
    ) -> None:
        """With ``by`` a row has what these paths find, and nothing else.

        JSONPathError and SelectorError for what cannot be read.
        """
        self.gvr = informer.gvr
        self._held: SharedIndexInformer | None = informer
        self._given = (columns, selector, field_selector, by)
        self._by = by is not None
        if by is not None:
            columns = _headed(checked_texts("by", by, BY))
        elif columns is not None:
            columns = dict(checked_mapping("columns", columns, _COLUMNS))
        for path in (columns or {}).values():
            if not isinstance(path, JSONPath):
                JSONPath(path)
        entries_of(informer.held(()), selector, field_selector)
        self._choice = Choice(columns, selector, field_selector)
        self._known = informer.lister.held.known
        check_paths([informer.lister.held], chosen_paths(self._choice, ()))
        self._wake: Callable[[], object] = _nobody
        self._sleeper = _Sleeper()
        self._keys: ChangedKeys | None = None
        self._asked: ColumnList = []

    @property
    def _informer(self) -> SharedIndexInformer:
        if self._held is None:
            raise StoppedError(f"the live view of {self.gvr} has ended: make a new one")
        return self._held

    def apart(self) -> Source:
        """One of the same objects, for a thread that looks while a view is in ``with`` of this."""
        return Source(self._informer, *self._given)

    def let_go(self) -> None:
        """Hold the informer no longer: it is closed if nobody else does. For good."""
        self._held = None

    def on_news(self, wake: Callable[[], object]) -> None:
        """What to call when there is something to take, or the informer's status has changed.

        It is called by any thread, with locks held: it takes none, and waits for nobody.
        """
        self._wake = self._sleeper.wake = wake

    def headings(self) -> Headings:
        """The columns. In ``with``; the server may have been asked for them."""
        ages = self._choice.columns is None
        return [Heading(each.name, ages and each.type is types.TIME) for each in self._asked]

    def all(self) -> Found:
        """All objects that are chosen."""
        return self._rows(self._informer.held())

    def take(self) -> Found:
        """What became of those that have changed since the last time, and of the status."""
        if not self._sleeper.waits:
            self._sleeper.waits = True
            self._informer.reflectors.bell.add(self._sleeper)
        keys: Keys = [] if self._keys is None else self._keys.take()
        return {**dict.fromkeys(keys), **self._rows(self._informer.held(keys))} if keys else {}

    @property
    def count(self) -> int:
        """How many objects are held, chosen or not; 0 once it has let go of the informer."""
        return 0 if self._held is None else len(self._held.store)

    @property
    def closed(self) -> bool:
        """The informer has stopped: there is no more to take."""
        return self._keys is None or self._keys.closed

    @property
    def ended(self) -> bool:
        """The informer has stopped, for good."""
        return self._held is None or self._held.is_stopped()

    def status(self) -> InformerStatus:
        """How the informer stands."""
        return self._informer.status()

    def __enter__(self) -> Self:
        if not self._informer.is_stopped():
            self._keys = self._informer.changed_keys(self._wake)
        view = self._informer.held()
        asked = asked_for(self._known, self._choice, namespaced=is_namespaced(view, self._known))
        if self._by:
            named = {each.name: each for each in asked}
            asked = [named[name] for name in self._choice.columns or {}]
        self._asked = asked
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._keys is not None:
            self._keys.close()

    def __repr__(self) -> str:
        return f"{self.gvr} {self._choice}"

    def _rows(self, view: View) -> Found:
        entries = entries_of(view, self._choice.selector, self._choice.field_selector)
        keys = list(entries)
        found = gathered(self._asked, keys, list(entries.values()), view.codec)
        return dict(zip(keys, zip(*found, strict=True), strict=True))


class _Sleeper:
    """Stands at the bell that rings for the informer's status, one ring at a time."""

    def __init__(self) -> None:
        self.waits = False
        self.wake: Callable[[], object] = _nobody

    def release(self) -> object:
        """The bell has rung."""
        self.waits = False
        return self.wake()


def _nobody() -> None:
    """Nobody is to be woken yet."""


def _headed(paths: Sequence[str]) -> dict[str, str]:
    """The paths under their headings: of two that would have one, both are there in full."""
    if not paths:
        raise ValueError(f"by is empty: give {BY}")
    short = [heading_of(path) for path in paths]
    return {
        path if short.count(heading) > 1 else heading: path
        for path, heading in zip(paths, short, strict=True)
    }


def heading_of(path: str) -> str:
    """What stands above the values of a path: its last names; of a template, all of it.

    >>> heading_of("{.spec.issuerRef.name}")
    'issuerRef.name'
    """
    text = path.strip("{}$").lstrip(".")
    if "{" in text:  # several parts
        return path
    for first in _FIRST_PARTS:
        text = text.removeprefix(first)
    return text
