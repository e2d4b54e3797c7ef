"""Recordings as data: what `dyninformer record` wrote, as events, rows, and moments."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from dyninformer.checked import checked_name, checked_path, wrong
from dyninformer.delivery.events import EventType
from dyninformer.discovery.declared import Declared
from dyninformer.discovery.known import Known
from dyninformer.discovery.resources import PrinterColumn
from dyninformer.errors import IncompleteRecordingWarning, UnknownResourceError
from dyninformer.moments.difference import frame_of
from dyninformer.moments.recorded import (
    BrokenRecordingError,
    RecordingLine,
    RecordingReader,
    ResourceDefinition,
    encoded,
)
from dyninformer.moments.snapshot import Snapshot
from dyninformer.moments.version import Told, Version, Versions
from dyninformer.resource import GroupVersionResource
from dyninformer.shown import Shown
from dyninformer.store.frozen import FrozenStore
from dyninformer.store.receive import UnusableObjectError
from dyninformer.store.snapshot import Rows
from dyninformer.store.store import Store
from dyninformer.store.versions import older
from dyninformer.types import Key

if TYPE_CHECKING:
    import pandas

Resource: TypeAlias = GroupVersionResource | str
Moment: TypeAlias = datetime | timedelta | float | str
Resources: TypeAlias = tuple[GroupVersionResource, ...]
Fits: TypeAlias = Callable[[RecordingLine], bool]

_COLUMNS: Final = (
    "time", "type", "resource", "namespace", "name", "resource_version", "initial",
    "final_state_unknown",
)  # fmt: skip
_A_MOMENT: Final = "a datetime, its text in ISO 8601, or seconds from the beginning"


class Recording(Shown):
    r"""What happened while `dyninformer record` ran; `open_recording` gives it.

    Iterating reads the file from its beginning and gives a `Version` for each line: what was there
    when the recording began (``initial``), then each addition, update and deletion with its time.
    In memory is the last state of each object, so that ``version.changes()`` can be told.

    A recorder that was killed leaves a file without an end. What can be read of it is given, and
    then IncompleteRecordingWarning says where it breaks off.

    >>> import tempfile
    >>> from dyninformer import open_recording
    >>> lines = [
    ...     '{"format":"dyninformer-recording","version":1,"time":"2026-01-01T00:00:00Z",'
    ...     '"resources":[{"gvr":"namespaces.v1","kind":"Namespace","namespaced":false}]}',
    ...     '{"time":"2026-01-01T00:00:01Z","type":"ADDED","gvr":"namespaces.v1",'
    ...     '"object":{"metadata":{"name":"shop"}}}',
    ...     '{"time":"2026-01-01T00:00:09Z","type":"END"}']
    >>> with tempfile.NamedTemporaryFile("w+", suffix=".ndjson") as file:
    ...     _ = file.write("\n".join([*lines, ""]))
    ...     file.flush()
    ...     recording = open_recording(file.name)
    ...     print([(version.type.value, version.key) for version in recording])
    ...     print(recording.at(0).keys(), recording.at("2026-01-01T00:00:05Z").keys())
    [('ADDED', 'shop')]
    [] ['shop']
    """

    def __init__(self, path: Path) -> None:
        with RecordingReader(path) as reader:
            header = reader.header
        self.path = path
        """The file."""
        self.started: datetime = header.time
        """When the recording began."""
        self._defined = header.resources

    @property
    def resources(self) -> Resources:
        """What was recorded from the beginning; other resources may have come later."""
        return tuple(each.parsed for each in self._defined)

    def __iter__(self) -> Iterator[Version]:
        return self._read(_any)

    def rows(self, resource: Resource | None = None) -> Rows:
        """A row for each version, without its object; of one resource, or of all."""
        return [
            {
                "time": each.time,
                "type": str(each.type),
                "resource": str(each.gvr),
                "namespace": each.namespace,
                "name": each.name,
                "resource_version": each.resource_version,
                "initial": each.initial,
                "final_state_unknown": each.final_state_unknown,
            }
            for each in self._read(self._of(resource))
        ]

    def to_frame(self, resource: Resource | None = None) -> pandas.DataFrame:
        """`rows` as a pandas DataFrame; needs the extra ``notebook``."""
        frame = frame_of(self.rows(resource), _COLUMNS)
        frame["time"] = frame["time"].astype("datetime64[ns, UTC]")
        return frame

    def history(self, key: str, resource: Resource | None = None) -> Versions:
        """The versions of one object, oldest first; the resource, if there are several."""
        checked_name("key", key, "a key such as 'prod/shop'")
        of = self._of(resource)
        found = Versions(self._read(lambda line: of(line) and _key(line) == key))
        if not found and "/" not in key:
            gvr = None if resource is None else self._gvr(resource)
            defined = [each for each in self._defined if gvr in (None, each.parsed)]
            if defined and all(each.namespaced for each in defined):
                raise ValueError(
                    f"what {self.path} has is namespaced: give the namespace too, as "
                    f"history('namespace/{key}')"
                )
        return found

    def at(self, time: Moment, resource: Resource | None = None) -> Snapshot:
        """What was there at that time, of one resource.

        ``time`` is a datetime (one without a zone is local time), its text in ISO 8601, or seconds
        or a timedelta from the beginning. ``resource`` may be left out where there is one.
        """
        moment, gvr = self._moment(time), self._one(resource)
        state, version = _State(gvr), ""
        defined = list(self._defined)
        for line in self._lines():
            if line.time > moment and not line.initial:
                break
            if line.resource is not None:
                defined.append(line.resource)
            if line.gvr == str(gvr):
                told = state.take(line).resource_version
                version = version if older(told, version) else told
        frozen = FrozenStore(state.store.view(), {})
        known = _known(gvr, defined)
        return Snapshot(frozen, time=moment, resource_version=version, known=known)

    def resource(self, spelling: str) -> GroupVersionResource:
        """Which of the recorded resources a spelling means; UnknownResourceError says which are.

        Any that kubectl takes: plural, singular, kind, short name, with the group or without.
        """
        word = checked_name("resource", spelling, "a name such as 'certificates'")
        defined = {each.gvr: each for each in self._defined}
        found = [each for each in defined.values() if word.lower() in _spellings(each)]
        if not found:  # perhaps it came later
            for line in self._lines():
                if line.resource is not None and word.lower() in _spellings(line.resource):
                    found = [line.resource]
                    break
                if line.gvr and line.gvr not in defined:
                    kind = str(line.object.get("kind") or "")
                    defined[line.gvr] = ResourceDefinition(line.gvr, kind, namespaced=True)
                    if word.lower() in _spellings(defined[line.gvr]):
                        found = [defined[line.gvr]]
                        break
        if len(found) == 1:
            return found[0].parsed
        known = ", ".join(defined) or "none"
        what = "no" if not found else "more than one"
        raise UnknownResourceError(f"{self.path} has {what} resource {word!r}; it has: {known}")

    def __repr__(self) -> str:
        names = ", ".join(map(str, self.resources))
        return f"<Recording {self.path}, begun {self.started.isoformat(' ', 'seconds')}: {names}>"

    # -- inside --------------------------------------------------------------------------

    def _read(self, fits: Fits) -> Iterator[Version]:
        states: dict[str, _State] = {}
        for line in self._lines():
            if line.gvr and fits(line):
                state = states.get(line.gvr)
                if state is None:
                    gvr = GroupVersionResource.parse(line.gvr)
                    state = states[line.gvr] = _State(gvr)
                yield state.take(line)

    def _lines(self) -> Iterator[RecordingLine]:
        with RecordingReader(self.path) as reader:
            try:
                for line in reader.lines():
                    if line.gvr:
                        _key(line)
                    yield line
            except (BrokenRecordingError, UnusableObjectError) as error:
                warnings.warn(f"{self.path}: {error}", IncompleteRecordingWarning, stacklevel=4)

    def _of(self, resource: Resource | None) -> Fits:
        if resource is None:
            return _any
        gvr = str(self._gvr(resource))
        return lambda line: line.gvr == gvr

    def _gvr(self, resource: Resource) -> GroupVersionResource:
        if isinstance(resource, GroupVersionResource):
            resource = str(resource)
        return self.resource(resource)

    def _one(self, resource: Resource | None) -> GroupVersionResource:
        if resource is not None:
            return self._gvr(resource)
        found = self.resources
        if len(found) != 1:
            names = ", ".join(map(str, found))
            has = f"has several resources ({names})" if found else "begins without a resource"
            raise ValueError(f"{self.path} {has}: say which one")
        return found[0]

    def _moment(self, time: object) -> datetime:
        if isinstance(time, bool):
            raise wrong("time", time, _A_MOMENT)
        given = time
        try:
            if isinstance(time, int | float):
                return self.started + timedelta(seconds=time)
            if isinstance(time, timedelta):
                return self.started + time
            if isinstance(time, str):
                time = datetime.fromisoformat(time)
            if isinstance(time, datetime):
                return time.astimezone(UTC)
        except (ValueError, OverflowError):  # infinity, or past the years that there are, too
            raise ValueError(f"time is {given!r}: give {_A_MOMENT}") from None
        raise wrong("time", given, _A_MOMENT)


def open_recording(path: str | os.PathLike[str]) -> Recording:
    """A recording that `dyninformer record` wrote, packed or plain, as events, rows and moments.

    UnreadableFileError if it is none. The file is not kept open.

    >>> open_recording("/etc/hostname")
    Traceback (most recent call last):
    dyninformer.errors.UnreadableFileError: /etc/hostname is not a recording of dyninformer: ...
    """
    return Recording(Path(checked_path("path", path, "the name of a file")).expanduser())


class _State:
    """What was there of one resource, as far as it was read."""

    def __init__(self, gvr: GroupVersionResource) -> None:
        self.store = Store(gvr)

    def take(self, line: RecordingLine) -> Version:
        """One line, and the state after it."""
        store = self.store
        received = store.receive(encoded(line.object))
        key = received.key
        before = store.get(key)
        if line.type == "DELETED":
            entry = store.codec.pack(received.data or b"{}")
            store.settle(key, None)
        else:
            store.settle(key, received)
            held = store.get(key)
            entry = store.codec.pack(received.data or b"{}") if held is None else held
        known = EventType.ADDED if before is None else EventType.UPDATED
        type_ = EventType.DELETED if line.type == "DELETED" else known
        told = Told(type_, line.time, line.initial, line.missed)
        return Version((store.gvr, store.codec), key, entry, told, before)


def _known(gvr: GroupVersionResource, defined: list[ResourceDefinition]) -> Known:
    """What the recording says of a resource; no server is asked."""
    found = next((each for each in defined if each.gvr == str(gvr)), None)
    if found is None:
        return Known(gvr)
    columns = tuple(
        PrinterColumn(each.name, each.type, each.path, each.priority) for each in found.columns
    )
    declared = Declared(columns, namespaced=found.namespaced)
    return Known(gvr, lambda _: declared)


def _any(_: RecordingLine) -> bool:
    return True


def _key(line: RecordingLine) -> Key:
    """The key of a line's object; UnusableObjectError if it has none."""
    metadata = line.object["metadata"]
    namespace, name = metadata.get("namespace") or "", metadata.get("name")
    if not isinstance(name, str) or not isinstance(namespace, str) or not name:
        raise UnusableObjectError("a line's object has no name in metadata.name")
    return f"{namespace}/{name}" if namespace else name


def _spellings(defined: ResourceDefinition) -> frozenset[str]:
    """What it may be called, in lower case."""
    gvr = defined.parsed
    words = {gvr.resource, defined.singular, defined.kind.lower(), *defined.short_names} - {""}
    grouped = {f"{each}.{gvr.group}" for each in words} if gvr.group else words
    return frozenset(
        {*words, *grouped, str(gvr), f"{gvr.group_version}/{gvr.resource}"}
        | {f"{each}.{gvr.version}.{gvr.group}" for each in words}
    )
