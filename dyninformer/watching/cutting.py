"""From bytes to what they are made of: the lines of a watch, the items of a list.

Nothing here reads an object: its bytes are handed on as they came. Each cutter is for one thread.

Where an item of a list ends is decided by a JSON parser that began at its start (S25): a parser
goes from left to right, so what it has found complete there is complete whatever follows. That
parser may be the reader's own, which has to read each item anyway: then items are cut on trust, at
every place that looks like the beginning of another. If one is cut too early it is no whole value,
if too late it is more than one, so that the first that cannot be read tells; from there on
`ItemCutter.again` cuts by a parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

import msgspec

from dyninformer.errors import DynInformerError
from dyninformer.jsonpath.json_bytes import DEEPEST, Brackets, too_deep
from dyninformer.store.receive import excerpt

EventBytes: TypeAlias = tuple[str, bytes]
Pieces: TypeAlias = list[bytes]

LONGEST_OBJECT: Final = 16 << 20
"""So many bytes of JSON may an object have, as the item of a list or in the line of a watch.

What a kube-apiserver keeps in etcd has 1.5 MB by etcd's own limit, and 2 MiB at most by that of
the connection to it. As JSON, where each control character becomes six bytes, it may have 12 MiB.
Aggregated API servers have no such limits, but a request to any is refused from 3 MiB on.
"""

_OFFSET = re.compile(r" \(byte (\d+)\)\Z")
_raw = msgspec.json.Decoder(msgspec.Raw)


class BrokenFrameError(DynInformerError, ValueError):
    """The bytes make no sense (S32). The message has their length, the place, the complaint.

    Of the content it has at most 64 bytes, with all but the structure masked.
    """


def broken(what: str, data: bytes | bytearray, complaint: str, offset: int = 0) -> BrokenFrameError:
    """The error to raise for ``data``."""
    return BrokenFrameError(
        f"{what} of {len(data):,} bytes: {complaint} at byte {offset}, near {excerpt(data, offset)}"
    )


def check_value(data: bytes, what: str) -> None:
    """Raise `BrokenFrameError` unless ``data`` is exactly one JSON value.

    One that is nested too deep to be read is not refused here, and neither is text that is
    no UTF-8: the code that reads the value finds out.
    """
    complaint = _complaint(data)
    if complaint and _complaint(_without_surrogates(data)):
        place = _OFFSET.search(complaint)
        offset = int(place[1]) if place else len(data)
        raise broken(what, data, complaint[: place.start() if place else None], offset)


def _without_surrogates(data: bytes) -> bytes:
    """The same with any other character for half of a surrogate pair; all else is in its place.

    That half is JSON to others, and the only thing that msgspec alone refuses.
    """
    return data.replace(b"\\ud", b"\\u0").replace(b"\\uD", b"\\u0")


def _complaint(data: bytes) -> str:
    """What the parser says of it, "" if it is one value."""
    try:
        _raw.decode(data)
    except RecursionError:
        pass
    except msgspec.DecodeError as refused:
        return str(refused)
    return ""


# -- The lines of a watch ----------------------------------------------------------------------

_LONGEST_LINE = LONGEST_OBJECT + 1024  # its type, and what is between
_LONGEST_TYPE = 1024
_STARTS = tuple(
    (b'{"type":"%b","object":' % name.encode(), name)
    for name in ("MODIFIED", "ADDED", "DELETED", "BOOKMARK", "ERROR")  # the most frequent first
)
_BRACE = 0x7D


class LineCutter:
    """Takes a stream in pieces that are cut anywhere, and gives its lines. For one thread."""

    def __init__(self, longest: int = _LONGEST_LINE) -> None:
        self._longest = longest
        # Not pieces: of two bytes each, they would take twenty times as much.
        self._held = bytearray()

    @property
    def rest(self) -> bytes:
        """What came after the last line: at the end of a stream, a line that was cut short."""
        return bytes(self._held)

    def feed(self, chunk: bytes) -> Pieces:
        """The lines that are complete with this piece; blank ones are left out.

        Raises `BrokenFrameError` for a line that never seems to end.
        """
        find = chunk.find  # of a single byte: faster by far than to split
        end = find(b"\n")
        first = chunk if end < 0 else chunk[:end]
        held = self._held
        if held or end < 0:
            held += first
        if len(held) > self._longest:
            self._held = bytearray()
            complaint = f"it is longer than {self._longest:,} bytes"
            raise broken("a line", held, complaint, self._longest)
        if end < 0:
            return []
        lines = [bytes(held) if held else first]
        start = end + 1
        while (end := find(b"\n", start)) >= 0:
            lines.append(chunk[start:end])
            start = end + 1
        self._held = bytearray(chunk[start:])
        return [line for line in lines if line and not line.isspace()]


class _Event(msgspec.Struct):
    type: msgspec.Raw
    object: msgspec.Raw


_event = msgspec.json.Decoder(_Event)
_type = msgspec.json.Decoder(str)


def cut_event(line: bytes) -> EventBytes:
    """The type of a watch's line, and the bytes that should be its object.

    They are cut out, not read, where the line looks as API servers write it. If they turn
    out to be one JSON value, they are the object; if not, ask `proved_event`.

    >>> cut_event(b'{"type":"ADDED","object":{"kind":"Pod"}}')
    ('ADDED', b'{"kind":"Pod"}')
    """
    if line[-1] == _BRACE:
        for start, kind in _STARTS:
            if line.startswith(start):
                return kind, line[len(start) : -1]
    return proved_event(line)


def proved_event(line: bytes) -> EventBytes:
    """The same by a parser, for any spelling. Raises `BrokenFrameError` if it is not an event.

    >>> proved_event(b'{ "object": {"kind": "Pod"}, "type": "ADDED" }')
    ('ADDED', b'{"kind": "Pod"}')
    """
    kind, found = _proved(line)
    return kind, line[found]


def proved_otherwise(line: bytes, data: bytes) -> bytes | None:
    """The object of a line if a parser finds another one than was cut out; None if it is the same.

    Only another one is copied: an object may be large.

    >>> proved_otherwise(b'{"type":"ADDED","object":{"a":1}}', b'{"a":1}')
    >>> proved_otherwise(b'{"type":"ADDED","object":1,"object":2}', b'1,"object":2')
    b'2'
    """
    _, found = _proved(line)
    return None if memoryview(line)[found] == data else line[found]


def _proved(line: bytes) -> tuple[str, slice]:
    """An event's type, and where in the line its object is."""
    check_value(line, "a line")
    plain = _without_surrogates(line)
    try:
        found = _event.decode(plain)
        if len(found.type) > _LONGEST_TYPE:
            raise broken("a line", line, "its type is too long to be one")
        kind, data = (
            slice(start := plain.find(part), start + len(part))
            for part in (memoryview(found.type), memoryview(found.object))
        )
        return _type.decode(line[kind]), data
    except RecursionError:
        raise broken("a line", line, "it is nested too deep to be read") from None
    except UnicodeDecodeError:
        raise broken("a line", line, "its type is no UTF-8") from None
    except msgspec.DecodeError as refused:
        raise broken("a line", line, str(refused)) from None


# -- The items of a list -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ListMeta:
    """What it does not say is "", or None where that is a number."""

    version: str
    continue_: str
    remaining: int | None
    api_version: str
    kind: str


class _Metadata(msgspec.Struct, rename={"version": "resourceVersion", "continue_": "continue"}):
    version: str | None = ""
    continue_: str | None = ""
    remaining: int | None = msgspec.field(default=None, name="remainingItemCount")


class _List(msgspec.Struct):
    api_version: str | None = msgspec.field(default="", name="apiVersion")
    kind: str | None = ""
    metadata: _Metadata | None = None
    items: None = None
    """There is nothing else to be read where a list's items are not."""


_list = msgspec.json.Decoder(_List)


def meta_of(body: bytes) -> ListMeta:
    """What a list without its items says. Raises DecodeError, or RecursionError, if it is none.

    >>> meta_of(b'{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":null}').version
    '7'
    """
    found = _list.decode(body)
    metadata = found.metadata or _Metadata()
    return ListMeta(
        metadata.version or "",
        metadata.continue_ or "",
        metadata.remaining,
        found.api_version or "",
        found.kind or "",
    )


_BATCH = 65_536
_LONGEST_REST = 1 << 18  # of what is no item: kind, metadata
_LONGEST_MARKER = 512
_END: Final = (b"}", b"}\n")
_MAY_END: Final = frozenset(b"} \t\r\n")
_ITEMS = re.compile(rb'"items"\s*+:\s*+(\[|null)')
_COMMA, _BRACKET = 0x2C, 0x5D

_several = msgspec.json.Decoder(list[msgspec.Raw])


class _Part(Enum):
    HEAD = auto()
    ITEMS = auto()
    TAIL = auto()


class ItemCutter:
    """Takes the body of one list in pieces of any size, gives its items, then `finish`.

    Holds what has not been handed out, and of a body of items little more than one of
    them. Raises `BrokenFrameError`. For one thread.

    ``on_trust``: the caller reads the items, notices which are none, and then calls `again`.
    """

    def __init__(self, *, on_trust: bool = False) -> None:
        self._on_trust = on_trust
        self.trusted = False
        """What was handed out last was cut on trust; there may be `more`."""
        self.api_version = ""
        """The list's own, known with the first item if it stands before the items."""
        self.kind = ""
        """As `api_version`. Lists whose items lack both have both there (S31)."""
        self._pieces: Pieces = []
        self._size = 0
        self._enough = 0  # so much has to be there before it is worth a look
        self._part = _Part.HEAD
        self._around = b""  # the body without its items
        self._marker = b""  # from the comma after an item to where the next one differs
        self._after_comma = False
        self._brackets = Brackets()  # of the item that is held, as far as it was followed
        self._scanned = 0  # that far
        # An item that is too long to be looked at again, when more of it comes: all of it that
        # came, and was followed. Not pieces, which may be of two bytes each.
        self._long: bytearray | None = None

    def feed(self, chunk: bytes) -> Pieces:
        """The items that are complete with this piece."""
        if not chunk:
            return []
        if self._long is not None:
            return self._lengthen(self._long, chunk)
        self._pieces.append(chunk)
        self._size += len(chunk)
        if self._size < self._enough and chunk[-1] not in _MAY_END:
            return []
        return self.more()

    def more(self) -> Pieces:
        """The next items of what is here already."""
        items: Pieces = []
        self.trusted = False
        self._hold(self._cut(b"".join(self._pieces), items))
        return items

    def again(self, items: Pieces) -> Pieces:
        """What was handed out last, from the first on that is no item, cut by a parser.

        So is the rest of the body: its items contain what looks like the beginning of others.
        """
        self._pieces = [b",".join([*items, *self._pieces])]
        self._on_trust = False
        return self.more()

    def finish(self) -> ListMeta:
        """The end of the body. Raises if it is not the end of a list."""
        held = b"".join(self._pieces)
        if self._part is _Part.ITEMS:
            some = held if self._long is None else self._long
            raise broken("a list", some, "it ends in the middle of its items", len(some))
        body = self._around + held
        check_value(body, "a list without its items")
        try:
            found = meta_of(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as refused:
            raise broken("a list without its items", body, str(refused)) from None
        if too_deep(body):
            raise broken("a list without its items", body, f"it has more than {DEEPEST:,} levels")
        if self._part is _Part.HEAD and not found.kind.endswith("List"):
            raise broken("a body", body, "it is no list: it has no items")
        return found

    # -- inside --------------------------------------------------------------------------

    def _hold(self, rest: bytes) -> None:
        self._pieces = [rest] if rest else []
        self._size = len(rest)
        if self._part is _Part.ITEMS:
            self._enough = max(_BATCH, 2 * len(rest))
            if len(rest) >= _BATCH and self._scanned == len(rest):
                self._pieces, self._long = [], bytearray(rest)
            return
        self._enough = 2 * len(rest)
        if len(rest) > _LONGEST_REST:
            complaint = f"it is longer than {_LONGEST_REST:,} bytes"
            raise broken("what is around the items", rest, complaint, _LONGEST_REST)

    def _lengthen(self, item: bytearray, chunk: bytes) -> Pieces:
        """Follow an item that is long already through one more piece, perhaps to its end."""
        self.trusted = False
        end = self._brackets.follow(chunk)
        item += chunk if end < 0 else chunk[:end]
        if len(item) > LONGEST_OBJECT:
            self._long = None
            complaint = f"it is longer than {LONGEST_OBJECT:,} bytes"
            raise broken("an item", item, complaint, LONGEST_OBJECT)
        if end < 0:
            return []
        items: Pieces = []
        last, self._long = bytes(item), None
        item.clear()
        self._pass(last, chunk, end, items)
        self._hold(self._cut(chunk[end + 1 :], items))
        return items

    def _cut(self, data: bytes, items: Pieces) -> bytes:
        if self._part is _Part.HEAD:
            data = self._enter(data)
        if self._part is _Part.ITEMS:
            data = self._take(data, items)
        return data

    def _enter(self, data: bytes) -> bytes:
        """Go into the items, if it is certain that they have begun."""
        brackets, followed = Brackets(), 0
        for found in _ITEMS.finditer(data):
            if brackets.follow(data, followed, found.start()) >= 0:
                break  # it is no object
            followed = found.start()
            if brackets.in_text or brackets.depth != 1:
                continue
            before = data[:followed].rstrip()
            if before.endswith(b"{"):
                whole = before + b"}"
            elif before.endswith(b","):
                whole = before[:-1] + b"}"
            else:
                continue
            # So this is a key of the list itself, and no text or inner field that looks like it.
            try:
                said = meta_of(whole)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as refused:
                raise broken("what is before the items", whole, str(refused)) from None
            self.api_version, self.kind = said.api_version, said.kind
            self._around = before + b'"items":null'
            self._part = _Part.TAIL if found[1] == b"null" else _Part.ITEMS
            return data[found.end() :]
        return data

    def _take(self, data: bytes, items: Pieces) -> bytes:
        if not self._marker and not self._scanned:
            self._expect_alike(data)
        if not self._marker:
            data = self._scan(data, items, once=True)
        if self._part is _Part.ITEMS and self._marker:
            if self._on_trust:
                data = self._take_on_trust(data, items)
                if self.trusted:
                    return data
            data = self._take_many(data, items)
        if self._part is _Part.ITEMS and self._marker and data.endswith(_END):
            data = self._take_last(data, items)
        if self._part is _Part.ITEMS and data and (len(data) >= _BATCH or data[-1] in _MAY_END):
            data = self._scan(data, items, once=False)
        return data

    def _take_on_trust(self, data: bytes, items: Pieces) -> bytes:
        """Take all up to the last place that looks like the beginning of another item."""
        marker, find, start = self._marker, data.find, 0
        between = len(marker) - len(marker[1:].lstrip())  # the comma, and blanks after it
        while (end := find(marker, start)) > 0:
            items.append(data[start:end])
            start = end + between
        if start:
            self._passed_comma()
            self.trusted = True
        return data[start:]

    def _take_many(self, data: bytes, items: Pieces) -> bytes:
        """Take what a parser reads as items, up to the last place that looks like another's."""
        end = data.rfind(self._marker)
        if end <= 0:
            return data
        try:
            found = _several.decode(b"[%b]" % data[:end])
        except (msgspec.DecodeError, RecursionError):
            return data  # it only looked like one, or is unusual: token by token, then
        items.extend(map(bytes, found))
        self._passed_comma()
        return data[end + 1 :]

    def _take_last(self, data: bytes, items: Pieces) -> bytes:
        """Take what there is up to the last closing bracket, if that is the items' own.

        It is, if what it closes is a list: inside of an item something would be open still.
        """
        end = data.rfind(b"]") + 1
        try:
            found = _several.decode(b"[" + data[:end])
        except (msgspec.DecodeError, RecursionError):
            return data
        if not found:
            return data  # after a comma that is none
        items.extend(map(bytes, found))
        self._part = _Part.TAIL
        return data[end:]

    def _expect_alike(self, data: bytes) -> None:
        """Expect other items to begin as the first does, right after the comma."""
        begin = data[: data.find(b'"metadata"', 0, _LONGEST_MARKER) + 1]
        if begin.startswith(b"{"):
            self._marker = b"," + begin

    def _scan(self, data: bytes, items: Pieces, *, once: bool) -> bytes:
        """Take items by following brackets: exact, resumable, and 20 times slower."""
        start, position = 0, self._scanned
        while (end := self._brackets.follow(data, position)) >= 0:
            self._pass(data[start:end], data, end, items)
            start = position = end + 1
            if self._part is _Part.TAIL or (self._learn(data, end, items[-1]) and once):
                return data[start:]
        self._scanned = len(data) - start
        return data[start:]

    def _pass(self, item: bytes, data: bytes, end: int, items: Pieces) -> None:
        """Take an item that ends where ``data`` has what no bracket is open around."""
        if data[end] == _COMMA:
            self._item(item, items)
        elif data[end] != _BRACKET:
            raise broken("a list", data, "its items end with the wrong bracket", end)
        else:
            if self._after_comma or item.strip():
                self._item(item, items)
            self._part = _Part.TAIL

    def _item(self, text: bytes, items: Pieces) -> None:
        item = text.strip()
        check_value(item, "an item")
        items.append(item)
        self._after_comma = True
        self._scanned = 0  # the brackets were followed to where none is open

    def _passed_comma(self) -> None:
        self._after_comma = True
        self._scanned, self._brackets = 0, Brackets()

    def _learn(self, data: bytes, comma: int, item: bytes) -> bool:
        """See how one item follows another. False if that cannot be seen yet."""
        following = data[comma + 1 : comma + 1 + _LONGEST_MARKER]
        space = len(following) - len(following.lstrip())
        if space == len(following):
            return False
        alike = item[: item.find(b'"metadata"', 0, _LONGEST_MARKER) + 1] or item[:1]
        self._marker = b"," + following[:space] + alike
        return True
