"""The body of a list, cut into its items as it arrives (S25).

Where an item ends is decided by a JSON parser that began at its start: a parser goes from
left to right, so what it has found complete there is complete whatever follows. That parser
may be the reader's own, which has to read each item anyway: then items are cut on trust, at
every place that looks like the beginning of another. Cut too early, one is no whole value, cut
too late, it is more than one, so that the first that cannot be read tells; from there on
`ItemCutter.again` cuts by a parser.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final

import msgspec

from dyninformer.jsonpath.json_bytes import DEEPEST, Brackets, too_deep
from dyninformer.watching.broken_frames import LONGEST_OBJECT, broken, check_value
from dyninformer.watching.list_meta import ListMeta, meta_of

__all__ = ["ItemCutter", "ListMeta"]

Items = list[bytes]

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

    ``on_trust``: whoever reads the items notices which are none, and says `again` then.
    """

    def __init__(self, *, on_trust: bool = False) -> None:
        self._on_trust = on_trust
        self.trusted = False
        """What was handed out last was cut on trust; there may be `more`."""
        self.api_version = ""
        """The list's own, known with the first item if it stands before the items."""
        self.kind = ""
        """As `api_version`. Lists whose items lack both have both there (S31)."""
        self._pieces: Items = []
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

    def feed(self, chunk: bytes) -> Items:
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

    def more(self) -> Items:
        """The next items of what is here already."""
        items: Items = []
        self.trusted = False
        self._hold(self._cut(b"".join(self._pieces), items))
        return items

    def again(self, items: Items) -> Items:
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

    def _lengthen(self, item: bytearray, chunk: bytes) -> Items:
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
        items: Items = []
        last, self._long = bytes(item), None
        item.clear()
        self._pass(last, chunk, end, items)
        self._hold(self._cut(chunk[end + 1 :], items))
        return items

    def _cut(self, data: bytes, items: Items) -> bytes:
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

    def _take(self, data: bytes, items: Items) -> bytes:
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

    def _take_on_trust(self, data: bytes, items: Items) -> bytes:
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

    def _take_many(self, data: bytes, items: Items) -> bytes:
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

    def _take_last(self, data: bytes, items: Items) -> bytes:
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

    def _scan(self, data: bytes, items: Items, *, once: bool) -> bytes:
        """Take items by following brackets: exact, resumable, and 20 times slower."""
        start, position = 0, self._scanned
        while (end := self._brackets.follow(data, position)) >= 0:
            self._pass(data[start:end], data, end, items)
            start = position = end + 1
            if self._part is _Part.TAIL or (self._learn(data, end, items[-1]) and once):
                return data[start:]
        self._scanned = len(data) - start
        return data[start:]

    def _pass(self, item: bytes, data: bytes, end: int, items: Items) -> None:
        """Take an item that ends where ``data`` has what no bracket is open around."""
        if data[end] == _COMMA:
            self._item(item, items)
        elif data[end] != _BRACKET:
            raise broken("a list", data, "its items end with the wrong bracket", end)
        else:
            if self._after_comma or item.strip():
                self._item(item, items)
            self._part = _Part.TAIL

    def _item(self, text: bytes, items: Items) -> None:
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
