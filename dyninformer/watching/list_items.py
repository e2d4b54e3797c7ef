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

from dyninformer.watching.broken_frames import broken, check_value
from dyninformer.watching.list_meta import ListMeta, meta_of

__all__ = ["ItemCutter", "ListMeta"]

Items = list[bytes]

_BATCH = 65_536
_LONGEST_REST = 1 << 20  # of what is no item: kind, metadata
_LONGEST_ITEM = 64 << 20
_LONGEST_MARKER = 512
_END: Final = (b"}", b"}\n")
_MAY_END: Final = frozenset(b"} \t\r\n")
_ITEMS = re.compile(rb'"items"\s*+:\s*+(\[|null)')
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|["\[\]{},]', re.DOTALL)
_QUOTE, _OPENING, _CLOSING, _COMMA = b'"', b"[{", b"]}", b","

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
        self._scanned = 0  # of what is held: looked at token by token, so far
        self._depth = 0  # there

    def feed(self, chunk: bytes) -> Items:
        """The items that are complete with this piece."""
        if not chunk:
            return []
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
            raise broken("a list", held, "it ends in the middle of its items", len(held))
        body = self._around + held
        check_value(body, "a list without its items")
        try:
            found = meta_of(body)
        except (msgspec.DecodeError, RecursionError) as refused:
            raise broken("a list without its items", body, str(refused)) from None
        if self._part is _Part.HEAD and not found.kind.endswith("List"):
            raise broken("a body", body, "it is no list: it has no items")
        return found

    # -- inside --------------------------------------------------------------------------

    def _hold(self, rest: bytes) -> None:
        self._pieces = [rest] if rest else []
        self._size = len(rest)
        if self._part is _Part.ITEMS:
            self._enough = max(_BATCH, 2 * len(rest))
            longest = _LONGEST_ITEM
        else:
            self._enough = 2 * len(rest)
            longest = _LONGEST_REST
        if len(rest) > longest:
            what = "an item" if self._part is _Part.ITEMS else "what is around the items"
            raise broken(what, rest, f"it is longer than {longest:,} bytes", longest)

    def _cut(self, data: bytes, items: Items) -> bytes:
        if self._part is _Part.HEAD:
            data = self._enter(data)
        if self._part is _Part.ITEMS:
            data = self._take(data, items)
        return data

    def _enter(self, data: bytes) -> bytes:
        """Go into the items, if it is certain that they have begun."""
        for found in _ITEMS.finditer(data):
            before = data[: found.start()].rstrip()
            if before.endswith(b"{"):
                whole = before + b"}"
            elif before.endswith(b","):
                whole = before[:-1] + b"}"
            else:
                continue
            # One object, if closed here: so this is a key of the list itself, and no text
            # or inner field that looks like it.
            try:
                said = meta_of(whole)
            except (msgspec.DecodeError, RecursionError):
                continue
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
        start, depth = 0, self._depth
        position = self._scanned
        for token in _TOKEN.finditer(data, position):
            text = token[0]
            position = token.end()
            if text in _OPENING:
                depth += 1
            elif text in _CLOSING:
                if depth == 0:
                    return self._leave(data, start, token, items)
                depth -= 1
            elif text == _COMMA:
                if depth == 0:
                    self._item(data[start : token.start()], items)
                    start = position
                    if self._learn(data, token.start(), items[-1]) and once:
                        break
            elif text == _QUOTE:  # a string that goes on in the next piece
                position = token.start()
                break
        else:
            position = len(data)
        self._depth = depth
        self._scanned = position - start
        return data[start:]

    def _item(self, text: bytes, items: Items) -> None:
        item = text.strip()
        check_value(item, "an item")
        items.append(item)
        self._passed_comma()

    def _passed_comma(self) -> None:
        self._after_comma = True
        self._scanned = self._depth = 0

    def _learn(self, data: bytes, comma: int, item: bytes) -> bool:
        """See how one item follows another. False if that cannot be seen yet."""
        following = data[comma + 1 : comma + 1 + _LONGEST_MARKER]
        space = len(following) - len(following.lstrip())
        if space == len(following):
            return False
        alike = item[: item.find(b'"metadata"', 0, _LONGEST_MARKER) + 1] or item[:1]
        self._marker = b"," + following[:space] + alike
        return True

    def _leave(self, data: bytes, start: int, token: re.Match[bytes], items: Items) -> bytes:
        last = data[start : token.start()]
        if token[0] != b"]":
            raise broken("a list", data, "its items end with the wrong bracket", token.start())
        if self._after_comma or last.strip():
            self._item(last, items)
        self._part = _Part.TAIL
        return data[token.end() :]
