"""What is fuzzed: each function takes any bytes, and raises if a promise is broken.

Where there is a second answer (a parser's beside one on trust, ``json``'s, ``http.client``'s, that
of a dict beside that of its bytes), both have to be the same.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from http.client import HTTPException, HTTPResponse, RemoteDisconnected
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
import zstandard

from dyninformer.errors import (
    ConfigError,
    JSONPathError,
    SelectorError,
    UnreachableError,
    UnreadableFileError,
)
from dyninformer.jsonpath import JSONPath, evaluate, extended
from dyninformer.jsonpath.json_bytes import too_deep
from dyninformer.moments.recorded import RecordingReader
from dyninformer.moments.saved import END_OF_FILE
from dyninformer.moments.snapshot import Snapshot
from dyninformer.resource import GroupVersionResource
from dyninformer.selectors import FieldSelector, LabelSelector, escape_field_value
from dyninformer.store.store import Store
from dyninformer.transport.chunks import BrokenChunksError, Dechunker
from dyninformer.transport.config import Environment, KubeconfigFiles, named_in
from dyninformer.transport.http1 import Http1
from dyninformer.transport.http2 import Http2
from dyninformer.transport.messages import Data, Engine, Outgoing, Part, ProtocolError
from dyninformer.watching.client import Source
from dyninformer.watching.cutting import (
    BrokenFrameError,
    ItemCutter,
    LineCutter,
    check_value,
    cut_event,
    proved_event,
)
from dyninformer.watching.decode import ListReading, StreamReading

Target: TypeAlias = Callable[[bytes], None]
Pieces: TypeAlias = list[bytes]

_WIDGETS: Final = GroupVersionResource("ex.io", "v1", "widgets")
_REFUSED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def divided(data: bytes) -> Pieces:
    """The bytes in pieces: of as many as the first of them says, 0 and 255 being one piece."""
    size, rest = data[:1], data[1:]
    if size in (b"", b"\0", b"\xff"):
        return [rest] if rest else []
    return [rest[start : start + size[0]] for start in range(0, len(rest), size[0])]


# -- What a server sends ------------------------------------------------------------------------


def list_body(data: bytes) -> None:
    """A list's items are the same by trust, by a parser, and by `json` where that can say."""
    parts = divided(data)
    trusted, proved = _items(parts, on_trust=True), _items(parts, on_trust=False)
    if trusted is not None and proved is not None:
        assert trusted == proved, (trusted, proved)
    known = _known_items(b"".join(parts))
    if known is not None:
        assert trusted is not None, "a list is refused where it is cut on trust"
        assert proved is not None, "a list is refused where a parser cuts it"
        assert [json.loads(each) for each in trusted] == known
    _read_all(ListReading(Store(_WIDGETS), "widgets"), parts)


def _items(parts: Pieces, *, on_trust: bool) -> Pieces | None:
    """What a cutter makes of it, None if it refuses it."""
    cutter = ItemCutter(on_trust=on_trust)
    found: Pieces = []
    try:
        for part in parts:
            found += _without_trust(cutter, cutter.feed(part))
            while cutter.trusted:
                found += _without_trust(cutter, cutter.more())
        cutter.finish()
    except BrokenFrameError:
        return None
    return [each.strip() for each in found]


def _without_trust(cutter: ItemCutter, items: Pieces) -> Pieces:
    for at, item in enumerate(items):
        if cutter.trusted and not _is_value(item):
            return items[:at] + cutter.again(items[at:])
    return items


def _is_value(data: bytes) -> bool:
    try:
        check_value(data, "an item")
    except BrokenFrameError:
        return False
    return True


def _known_items(body: bytes) -> list[Any] | None:
    """A list's items as `json` reads them; None where it cannot say, or where we may refuse it."""
    try:
        found = json.loads(body, object_pairs_hook=_pairs, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("items"), list) or too_deep(body):
        return None
    try:
        msgspec.json.decode(body, type=_List)
        return list(json.loads(body)["items"])
    except _REFUSED:
        return None


class _Metadata(msgspec.Struct):
    resource_version: str | None = msgspec.field(default="", name="resourceVersion")
    continue_: str | None = msgspec.field(default="", name="continue")
    remaining: int | None = msgspec.field(default=None, name="remainingItemCount")


class _List(msgspec.Struct):
    """What API servers send; that anything else is refused is no fault."""

    api_version: str | None = msgspec.field(default="", name="apiVersion")
    kind: str | None = ""
    metadata: _Metadata | None = None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key twice")
    return found


def _refuse(constant: str) -> float:
    raise ValueError(constant)


def watch_lines(data: bytes) -> None:
    """A line says the same on trust and by a parser, and the same as `json` where that can say."""
    parts = divided(data)
    cutter = LineCutter()
    with suppress(BrokenFrameError):
        for part in parts:
            for line in cutter.feed(part):
                _same_event(line)
    for start in (None, "5"):
        _read_all(StreamReading(Store(_WIDGETS), "widgets", start), parts)


def _same_event(line: bytes) -> None:
    try:
        type_, proved = proved_event(line)
    except BrokenFrameError:
        # Then what is cut on trust is no value either, or is refused as well.
        with suppress(BrokenFrameError):
            cut = cut_event(line)[1]
            assert not _is_value(cut) or too_deep(cut), line
        return
    cut_type, cut = cut_event(line)
    if _is_value(cut):
        assert (cut_type, cut.strip()) == (type_, proved.strip()), line
    with suppress(ValueError, RecursionError):
        known = json.loads(line, object_pairs_hook=_pairs, parse_constant=_refuse)
        assert known["type"] == type_
        assert known["object"] == json.loads(proved)


def _read_all(reading: ListReading | StreamReading, parts: Iterable[bytes]) -> None:
    """Whatever comes, a reading answers; it raises nothing."""
    for part in parts:
        for _ in reading.feed(part):
            pass
    reading.end()


def chunked_body(data: bytes) -> None:
    """What is taken as a chunked body has the content that http.client reads, however it is cut."""
    parts = divided(data)
    whole = _dechunked([b"".join(parts)])
    assert _dechunked(parts) == whole, "where the pieces end matters"
    if whole is None:
        return
    content, done = whole
    theirs = _as_http_client_reads(b"".join(parts))
    if done:
        assert theirs is not None, "http.client refuses what was taken"
        assert theirs == content


def _dechunked(parts: Pieces) -> tuple[bytes, bool] | None:
    """The content, and whether it ended; None if it is refused."""
    dechunker, found = Dechunker(), b""
    for part in parts:
        if dechunker.done:
            break
        try:
            found += dechunker.feed(part)
        except BrokenChunksError:
            return None
    return found, dechunker.done


class _Socket:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, _mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)


def _as_http_client_reads(body: bytes) -> bytes | None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    response = HTTPResponse(_Socket(head + body))  # type: ignore[arg-type]
    response.begin()
    try:
        return response.read()
    except (HTTPException, ValueError, OverflowError):
        return None


# -- What users write ---------------------------------------------------------------------------

_OBJECT: Final = {
    "apiVersion": "cert-manager.io/v1",
    "kind": "Certificate",
    "metadata": {
        "name": "shop",
        "namespace": "prod",
        "labels": {"app": "shop", "app.kubernetes.io/name": "shop", "": "x"},
        "annotations": {},
        "ownerReferences": [],
    },
    "spec": {
        "dnsNames": ["a.example", "b.example", "", "é\u2028"],
        "replicas": 3,
        "ratio": 0.5,
        "on": True,
        "none": None,
        "nested": [[1, 2], [], [{"a": [{"b": 1}]}]],
    },
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "n": 1},
            {"type": "Issuing", "status": "False"},
            {},
        ]
    },
}
_ODD: Final[list[Any]] = [{}, {"metadata": None, "spec": [], "status": "x"}, [1], None]
_ODD_LABELS: Final[list[Any]] = [{}, None, {"app": "web"}, {"app": None, "n": 5, "": []}]
_OBJECT_BYTES: Final = json.dumps(_OBJECT).encode()


def jsonpath(data: bytes) -> None:
    """An expression of either dialect is refused, or says the same of a dict and of its bytes."""
    text = data.decode("utf-8", "surrogateescape")
    with warnings.catch_warnings(), suppress(JSONPathError):
        warnings.simplefilter("ignore")
        path = JSONPath(text)
        assert _said(path, _OBJECT) == _said(path, _OBJECT_BYTES), text
        for odd in _ODD:
            _said(path, odd)


def lower_limits() -> None:
    """Have paths of this process give up early, for what they may do takes seconds."""
    evaluate.MAX_WORK = extended.MAX_WORK = 20_000


def _said(path: JSONPath, obj: Any) -> object:
    """What a path finds and prints, or that it complains, which it does in words."""
    try:
        return path.values(obj), path.text(obj)
    except JSONPathError:
        return None


def selectors(data: bytes) -> None:
    """A selector is read or refused, and a value that is escaped is read back as it was."""
    text = data.decode("utf-8", "surrogateescape")
    with suppress(SelectorError):
        labels = LabelSelector.parse(text)
        assert labels == LabelSelector.parse(text)
        for each in _ODD_LABELS:
            assert labels.matches(each) in (True, False)
    with suppress(SelectorError):
        fields = FieldSelector.parse(text)
        assert fields.matches(lambda _: "") in (True, False)
    with suppress(SelectorError):
        [found] = FieldSelector.parse("f=" + escape_field_value(text)).requirements
        assert found.value == text.strip() or found.value == text


# -- Files --------------------------------------------------------------------------------------


def _written(data: bytes, name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        yield path


def kubeconfig(data: bytes) -> None:
    """A kubeconfig is read, or refused in words; none is executed."""
    if b"exec" in data or b"auth-provider" in data or b"cmd-path" in data:
        return  # a command that was made up is not to be run
    for path in _written(data, "config"):
        files = KubeconfigFiles((str(path),))
        with suppress(ConfigError):
            named_in(files)
        with suppress(ConfigError, UnreachableError), closing(Source(kubeconfig=path)) as source:
            Environment(files).load()
            assert source.host


def recording(data: bytes) -> None:
    """A recording is read as far as it goes, and says the same plain and compressed."""
    plain = _lines(data, "night.ndjson")
    if not data.startswith(b"\x28\xb5\x2f\xfd"):
        packed = zstandard.ZstdCompressor(level=1).compress(data)
        assert _lines(packed, "night.ndjson.zst") == plain


def _lines(data: bytes, name: str) -> list[Any]:
    found: list[Any] = []
    for path in _written(data, name):
        with suppress(UnreadableFileError), RecordingReader(path) as reader:
            found.append(reader.header)
            found.extend(reader.lines())
    return found


def snapshot(data: bytes) -> None:
    """A snapshot is read whole or refused; what is read can be decoded, and is saved the same.

    What is not packed has its end put right and is packed, since no chance would do that.
    """
    file = data
    if not data.startswith(b"\x28\xb5\x2f\xfd"):
        lines = data.removesuffix(b"\n") + b"\n"
        end = {"end": lines.count(b"\n") - 1, "sha256": hashlib.sha256(lines).hexdigest()}
        file = zstandard.ZstdCompressor(level=1).compress(lines + json.dumps(end).encode() + b"\n")
        file += END_OF_FILE
    for path in _written(file, "certs.snapshot"):
        try:
            read = Snapshot.load(path, most_bytes=1 << 20)
        except UnreadableFileError:
            return
        assert [read.get(key) for key in read.keys()] == read.list()  # noqa: SIM118 - of objects
        again = path.with_suffix(".again")
        read.save(again)
        assert not Snapshot.load(again).diff(read)


def http1(data: bytes) -> None:
    """An answer says the same however it is cut, or is refused however it is cut."""
    _same_however_cut(data, lambda: Http1("server"))


def http2(data: bytes) -> None:
    """Frames say the same however they are cut, or are refused however they are cut."""
    _same_however_cut(data, lambda: Http2("server"))


def _same_however_cut(data: bytes, make: Callable[[], Engine]) -> None:
    pieces = divided(data)
    cut, whole = _answers(make(), pieces), _answers(make(), [b"".join(pieces)])
    assert cut == whole, (cut, whole)


def _answers(engine: Engine, pieces: Pieces) -> object:
    """What an engine makes of these bytes as the answers to two requests; "refused" if it fails."""
    request = Outgoing("GET", "/", [])
    streams = {engine.send(request, window=0): [b""] for _ in range(min(2, engine.room))}
    ends: list[Part] = []
    try:
        for piece in pieces:
            for part in engine.receive(piece):
                if isinstance(part, Data):
                    streams[part.stream][0] += part.data
                    engine.consumed(part.stream, len(part.data))
                else:
                    ends.append(part)
            engine.output()
        ends += engine.receive_end()
    except (ProtocolError, RemoteDisconnected):
        return "refused"
    return streams, [str(each) for each in ends]


TARGETS: Final[dict[str, Target]] = {
    each.__name__: each
    for each in (
        list_body,
        watch_lines,
        chunked_body,
        jsonpath,
        selectors,
        kubeconfig,
        recording,
        snapshot,
        http1,
        http2,
    )
}
