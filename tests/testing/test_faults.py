"""Each fault is declared in one line, and a client of urllib3 sees what it says."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

import pytest
import urllib3
from urllib3.exceptions import HTTPError, NewConnectionError, ProtocolError, ReadTimeoutError

from dyninformer.testing import ApiError, ApiServer
from dyninformer.testing.faults import (
    BlackHole,
    Call,
    Compact,
    ContentType,
    CutChunks,
    Delay,
    DuplicateLines,
    EndEarly,
    Ending,
    EndlessHeaders,
    Fault,
    HttpStatus,
    InjectLine,
    LoseAnswer,
    LoseEvents,
    OversizedLine,
    RawAnswer,
    Refuse,
    Reset,
    RestoreBackup,
    SlowDrip,
    Stale,
    StreamError,
    Truncate,
    TruncateGzip,
    WithholdBookmarks,
)
from tests.conformance.shapes import WIDGETS
from tests.testing.conftest import WIDGETS_PATH, Client, widget


def names(answer: urllib3.BaseHTTPResponse) -> list[str]:
    """The names of the items of a list."""
    return [item["metadata"]["name"] for item in json.loads(answer.data)["items"]]


def read_lines(answer: urllib3.BaseHTTPResponse) -> tuple[list[bytes], Exception | None]:
    """What comes of a watch until it ends, and how it broke, if it did."""
    return read_rest(answer.stream(65_536))


def read_rest(pieces: Iterable[bytes]) -> tuple[list[bytes], Exception | None]:
    """The lines until the watch ends, and the error that ended it, if there was one."""
    data = b""
    try:
        for piece in pieces:
            data += piece
    except HTTPError as error:
        return data.split(b"\n"), error
    return data.split(b"\n"), None


def read_some(answer: urllib3.BaseHTTPResponse, lines: int) -> list[bytes]:
    """The first lines of a watch that goes on."""
    data = b""
    for piece in answer.stream(65_536):
        data += piece
        if data.count(b"\n") >= lines:
            break
    else:
        pytest.fail(f"the watch ended after {data!r}")
    answer.close()
    return data.split(b"\n")[:lines]


def open_watch(client: Client) -> Iterator[bytes]:
    """A watch that is open: the three widgets have been read, the rest is to come."""
    pieces = client.watch().stream(65_536)
    data = b""
    while data.count(b"\n") < 3:
        data += next(pieces)
    return pieces


def in_short(line: bytes) -> str:
    """The type of a line of a watch, and its object's name or code."""
    event = json.loads(line)
    obj = event["object"]
    return f"{event['type']} {obj.get('code') or obj['metadata']['name']}"


@pytest.fixture(autouse=True)
def widgets(server: ApiServer) -> None:
    """Three widgets."""
    for name in "abc":
        server.create(widget(name))


# The connection.


def test_refused_connections_are_refused_until_the_fault_is_taken_back(
    server: ApiServer, client: Client
) -> None:
    """The port is closed, and is the same when it opens again."""
    with server.faults.add(Refuse()), pytest.raises(NewConnectionError):
        client.list()
    assert names(client.list()) == ["a", "b", "c"]


def test_refusal_can_end_by_itself(server: ApiServer, connect: Callable[..., Client]) -> None:
    """After its seconds, the port is open again."""
    server.faults.add(Refuse(), seconds=0.1)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            assert names(connect(server).list()) == ["a", "b", "c"]
        except NewConnectionError:
            continue
        return
    pytest.fail("the port never opened again")


def test_connections_that_are_open_outlive_a_refusal(server: ApiServer, client: Client) -> None:
    """As on a server that has been told to end: the watch goes on."""
    answer = client.watch()
    with server.faults.add(Refuse()):
        server.create(widget("late"))
        assert b'"late"' in b"".join(read_some(answer, lines=4))


def test_a_reset_comes_instead_of_an_answer(server: ApiServer, client: Client) -> None:
    """The request is not handled."""
    server.faults.add(Reset(), verb="create")
    with pytest.raises(ProtocolError, match="reset by peer"):
        client.ask("POST", WIDGETS_PATH, body=widget("new"))
    with pytest.raises(ApiError, match='"new" not found'):
        server.get("widgets/new")


def test_a_reset_comes_in_the_middle_of_a_watch(server: ApiServer, client: Client) -> None:
    """The lines before it arrive whole."""
    fault = server.faults.add(Reset(after_lines=2), verb="watch", resource="widgets", times=1)
    lines, error = read_lines(client.watch())
    assert [json.loads(line)["object"]["metadata"]["name"] for line in lines[:-1]] == ["a", "b"]
    assert "reset by peer" in str(error)
    assert fault.hits == 1


def test_a_reset_comes_in_the_middle_of_a_list(server: ApiServer, client: Client) -> None:
    """After some bytes of the body."""
    server.faults.add(Reset(after_bytes=100), verb="list")
    with pytest.raises(ProtocolError):
        client.list()


def test_a_lost_answer_hides_a_write_that_was_done(server: ApiServer, client: Client) -> None:
    """The client cannot know; the object is there."""
    server.faults.add(LoseAnswer(), verb="create")
    with pytest.raises(ProtocolError):
        client.ask("POST", WIDGETS_PATH, body=widget("new"))
    assert server.get("widgets/new")["metadata"]["name"] == "new"


def test_a_black_hole_takes_requests_and_says_nothing(
    server: ApiServer, connect: Callable[..., Client]
) -> None:
    """The connection stays open: only the client's own timeout ends the wait."""
    fault = server.faults.add(BlackHole(), verb="list")
    with pytest.raises(ReadTimeoutError):
        connect(server, timeout=0.1).list()
    assert fault.hits == 1


def test_a_watch_falls_silent(server: ApiServer, connect: Callable[..., Client]) -> None:
    """After some lines nothing comes, whatever happens."""
    server.faults.add(BlackHole(after_lines=3), verb="watch")
    answer = connect(server, timeout=1).watch()
    server.create(widget("late"))
    lines, error = read_lines(answer)
    assert len(lines) == 4
    assert isinstance(error, ReadTimeoutError)


def test_a_delay_passes_before_the_answer(server: ApiServer, client: Client) -> None:
    """Then all is as usual."""
    server.faults.add(Delay(0.1), verb="list")
    begin = time.monotonic()
    assert names(client.list()) == ["a", "b", "c"]
    assert time.monotonic() - begin >= 0.1


def test_a_delay_passes_in_the_middle_of_a_watch(server: ApiServer, client: Client) -> None:
    """Between two lines."""
    server.faults.add(Delay(0.1, after_lines=1), verb="watch")
    begin = time.monotonic()
    assert len(read_some(client.watch(), lines=3)) == 3
    assert time.monotonic() - begin >= 0.1


def test_an_answer_drips(server: ApiServer, client: Client) -> None:
    """Some bytes, a pause, some bytes: all of it arrives in the end."""
    server.faults.add(SlowDrip(size=200, seconds=0.01), verb="list")
    begin = time.monotonic()
    answer = client.list()
    assert names(answer) == ["a", "b", "c"]
    assert time.monotonic() - begin >= len(answer.data) / 200 * 0.01


def test_a_list_is_cut_short(server: ApiServer, client: Client) -> None:
    """The framing says that something is missing."""
    server.faults.add(Truncate(), verb="list")
    with pytest.raises(ProtocolError, match="IncompleteRead"):
        client.list()


def test_a_list_is_cut_short_where_nobody_can_tell(server: ApiServer, client: Client) -> None:
    """The framing is complete; the JSON is not."""
    server.faults.add(Truncate(after_bytes=50, ending=Ending.CLEAN), verb="list")
    assert len(client.list().data) == 50


@pytest.mark.parametrize("ending", [Ending.CLOSE, Ending.RESET, Ending.CLEAN])
def test_a_watch_is_cut_in_the_middle_of_a_line(
    server: ApiServer, client: Client, ending: Ending
) -> None:
    """With a closed connection, a reset, or a clean end."""
    server.faults.add(Truncate(after_lines=1, ending=ending), verb="watch")
    lines, error = read_lines(client.watch())
    assert json.loads(lines[0])["type"] == "ADDED"
    assert lines[1].startswith(b'{"type":"ADDED"')
    assert not lines[1].endswith(b"}}")
    assert (error is None) == (ending is Ending.CLEAN)


def test_chunks_cut_lines_and_characters_anywhere(server: ApiServer, client: Client) -> None:
    """The bytes are the same, whatever the chunks."""
    server.create(widget("umlaut", note="äöü"))
    server.faults.add(CutChunks(size=3))
    assert json.loads(client.list().data)["items"][3]["spec"]["note"] == "äöü"
    pieces = client.watch().read_chunked()
    assert {len(next(pieces)) for _ in range(20)} == {3}


def test_a_watch_ends_early_and_clean(server: ApiServer, client: Client) -> None:
    """After some lines, long before its time."""
    server.faults.add(EndEarly(after_lines=2), verb="watch")
    lines, error = read_lines(client.watch())
    assert (len(lines), error) == (3, None)


def test_headers_go_on_for_ever(server: ApiServer, client: Client) -> None:
    """A client that reads on gives up by itself."""
    fault = server.faults.add(EndlessHeaders(seconds=0), verb="list")
    with pytest.raises(ProtocolError, match="more than 100 headers"):
        client.list()
    assert fault.hits == 1


def test_any_bytes_can_stand_for_an_answer(server: ApiServer, client: Client) -> None:
    """Also such as are no HTTP."""
    server.faults.add(RawAnswer(b"SSH-2.0-OpenSSH_9.9\r\n"), verb="list")
    with pytest.raises(ProtocolError, match="SSH-2"):
        client.list()


@pytest.mark.parametrize("fault", [Reset(after_lines=2), Truncate(after_lines=2)], ids=repr)
def test_connections_break_under_tls_too(connect: Callable[..., Client], fault: Fault) -> None:
    """Without the end of TLS, and without the terminating chunk."""
    with ApiServer(tls=True) as server:
        server.install(WIDGETS, [widget(name) for name in "abc"])
        server.faults.add(fault, verb="watch")
        lines, error = read_lines(connect(server).watch())
        assert len(lines) == 3
        assert isinstance(error, ProtocolError)


# What is said.


@pytest.mark.parametrize("code", [401, 403, 404, 410, 429, 500, 503, 504])
def test_a_refusal_is_a_status(server: ApiServer, client: Client, code: int) -> None:
    """Every code comes with the reason that the real server gives it."""
    server.faults.add(HttpStatus(code, "so it is"), verb="list")
    answer = client.list()
    status = json.loads(answer.data)
    assert (answer.status, status["code"], status["message"]) == (code, code, "so it is")
    assert status.get("reason") == {
        401: "Unauthorized",
        403: "Forbidden",
        404: "NotFound",
        410: "Expired",
        429: "TooManyRequests",
        503: "ServiceUnavailable",
        504: "Timeout",
    }.get(code)


@pytest.mark.parametrize("text", ["Too many requests, please try again later.\n", ""])
def test_a_refusal_can_be_no_status(server: ApiServer, client: Client, text: str) -> None:
    """Plain text, or nothing at all."""
    server.faults.add(HttpStatus(429, text=text), verb="list")
    answer = client.list()
    assert (answer.status, answer.data.decode()) == (429, text)
    assert answer.headers["Content-Type"].startswith("text/plain")


def test_a_refusal_says_when_to_come_back(server: ApiServer, client: Client) -> None:
    """In seconds, which the Status repeats, or as a moment."""
    moment = datetime(2031, 1, 2, 3, 4, 5, tzinfo=UTC)
    server.faults.add(HttpStatus(503, retry_after=7), verb="list", times=1)
    server.faults.add(HttpStatus(503, retry_after=moment), verb="list", times=1)
    first, second = client.list(), client.list()
    assert first.headers["Retry-After"] == "7"
    assert json.loads(first.data)["details"]["retryAfterSeconds"] == 7
    assert second.headers["Retry-After"] == "Thu, 02 Jan 2031 03:04:05 GMT"


@pytest.mark.parametrize("code", [410, 500, None])
def test_a_watch_gets_an_error_in_the_stream(
    server: ApiServer, client: Client, code: int | None
) -> None:
    """With a code or without one, then a clean end."""
    server.faults.add(StreamError(code, after_lines=1), verb="watch")
    lines, error = read_lines(client.watch())
    event = json.loads(lines[1])
    assert error is None
    assert event["type"] == "ERROR"
    assert event["object"].get("code") == code


def test_every_line_comes_twice(server: ApiServer, client: Client) -> None:
    """A duplicate is the same bytes."""
    server.faults.add(DuplicateLines(), verb="watch")
    first, second, third, _ = read_some(client.watch(), lines=4)
    assert first == second != third


def test_bookmarks_are_withheld(server: ApiServer, client: Client) -> None:
    """A streaming list never comes to its end mark."""
    query = "&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    assert b"k8s.io/initial-events-end" in read_some(client.watch(query), lines=4)[3]
    fault = server.faults.add(WithholdBookmarks(), verb="watch")
    answer = client.watch(query)
    server.create(widget("late"))
    assert b'"late"' in read_some(answer, lines=4)[3]
    assert fault.hits == 1


@pytest.mark.parametrize("line", [b"\xff\xfe{not json", b"", b"null", b"\xc3"])
def test_a_line_that_no_server_sends_comes_in_between(
    server: ApiServer, client: Client, line: bytes
) -> None:
    """Garbage, a blank, half a character."""
    server.faults.add(InjectLine(line, after_lines=1), verb="watch")
    assert read_some(client.watch(), lines=3)[1] == line


def test_one_line_is_far_too_long(server: ApiServer, client: Client) -> None:
    """It still means what it meant."""
    server.faults.add(OversizedLine(5_000_000, after_lines=1), verb="watch")
    lines = read_some(client.watch(), lines=3)
    assert [len(line) > 4_000_000 for line in lines] == [False, True, False]
    assert json.loads(lines[1])["object"]["metadata"]["name"] == "b"


def test_the_content_type_is_wrong(server: ApiServer, client: Client) -> None:
    """With the right body, or with that of a login page; of a watch too."""
    server.faults.add(ContentType("text/plain"), times=1)
    server.faults.add(ContentType("text/html", b"<html>Sign in"), verb="list", times=1, skip=1)
    server.faults.add(ContentType("text/html"), verb="watch")
    first, second = client.list(), client.list()
    assert (first.headers["Content-Type"], len(names(first))) == ("text/plain", 3)
    assert (second.headers["Content-Type"], second.data) == ("text/html", b"<html>Sign in")
    assert client.watch().headers["Content-Type"] == "text/html"


def test_a_compressed_answer_is_cut_short(server: ApiServer, client: Client) -> None:
    """The framing is complete, the gzip member is not."""
    server.faults.add(TruncateGzip(), verb="list")
    answer = client.pool.request(
        "GET",
        server.url + WIDGETS_PATH,
        headers={"Authorization": f"Bearer {server.token}", "Accept-Encoding": "gzip"},
        decode_content=False,
    )
    assert answer.headers["Content-Encoding"] == "gzip"
    with pytest.raises(EOFError):
        gzip.decompress(answer.data)


# The state.


def test_a_stale_replica_answers_from_the_past(server: ApiServer, client: Client) -> None:
    """Lists and watches do not show what was written since; writes are the leader's."""
    with server.faults.add(Stale()):
        created = client.ask("POST", WIDGETS_PATH, body=widget("late"))
        assert created.status == 201
        assert names(client.list()) == ["a", "b", "c"]
        lines, _ = read_lines(client.watch("&timeoutSeconds=1"))
        assert len(lines) == 4
    assert names(client.list()) == ["a", "b", "c", "late"]


def test_a_compaction_comes_behind_page_one(server: ApiServer, client: Client) -> None:
    """The continue token has expired when it is used."""
    server.faults.add(Compact(when="after"), verb="list", times=1)
    page = json.loads(client.list("?limit=1").data)
    answer = client.list(f"?limit=1&continue={page['metadata']['continue']}")
    assert (answer.status, json.loads(answer.data)["reason"]) == (410, "Expired")


def test_a_compaction_comes_between_list_and_watch(server: ApiServer, client: Client) -> None:
    """The watch is told that its version is too old."""
    server.faults.add(Compact(), verb="watch", times=1)
    version = json.loads(client.list().data)["metadata"]["resourceVersion"]
    lines, error = read_lines(client.watch(f"&resourceVersion={version}"))
    assert error is None
    assert json.loads(lines[0])["object"]["code"] == 410


def test_a_backup_is_restored_behind_a_clients_back(server: ApiServer, client: Client) -> None:
    """What was written since has never been; the version goes back."""
    backup = server.snapshot()
    server.delete("widgets/a")
    server.create(widget("late"))
    before = json.loads(client.list().data)
    server.faults.add(RestoreBackup(snapshot=backup), verb="list", times=1)
    after = json.loads(client.list().data)
    assert [item["metadata"]["name"] for item in after["items"]] == ["a", "b", "c"]
    assert int(after["metadata"]["resourceVersion"]) < int(before["metadata"]["resourceVersion"])


def test_anything_can_be_done_at_the_worst_moment(server: ApiServer, client: Client) -> None:
    """A function is called when the answer is made and not yet sent."""
    delete = Call(when="after", function=lambda: server.delete("widgets/a"))
    server.faults.add(delete, verb="get", name="a", times=1)
    assert client.ask("GET", f"{WIDGETS_PATH}/a").status == 200
    assert client.ask("GET", f"{WIDGETS_PATH}/a").status == 404


# Aim, count, end.


def test_a_fault_strikes_only_what_it_is_aimed_at(server: ApiServer, client: Client) -> None:
    """By verb, resource, name, user and path."""
    carol = server.access.add_user("carol", groups=["system:masters"])
    teapot = HttpStatus(418)
    for aim in (
        {"verb": ("delete", "patch")},
        {"resource": "widgets/status"},
        {"resource": "gadgets"},
        {"namespace": "other"},
        {"name": "b"},
        {"path": "/api/v1*"},
    ):
        server.faults.add(teapot, **aim)
    server.faults.add(teapot, user="carol", resource="widgets.ex.io")
    codes = {
        "list": client.list().status,
        "a": client.ask("GET", f"{WIDGETS_PATH}/a").status,
        "b": client.ask("GET", f"{WIDGETS_PATH}/b").status,
        "status": client.ask("GET", f"{WIDGETS_PATH}/a/status").status,
        "nodes": client.ask("GET", "/api/v1/nodes").status,
        "carol": client.ask("GET", WIDGETS_PATH, token=carol).status,
        "delete": client.ask("DELETE", f"{WIDGETS_PATH}/a").status,
    }
    assert codes == {
        "list": 200,
        "a": 200,
        "b": 418,
        "status": 418,
        "nodes": 418,
        "carol": 418,
        "delete": 418,
    }


def test_a_fault_skips_some_and_ends_after_others(server: ApiServer, client: Client) -> None:
    """The second and third of these requests meet the fault."""
    fault = server.faults.add(HttpStatus(503), verb="list", skip=1, times=2)
    assert [client.list().status for _ in range(4)] == [200, 503, 503, 200]
    assert fault.hits == 2


def test_faults_that_answer_take_turns_in_the_order_they_were_added(
    server: ApiServer, client: Client
) -> None:
    """Each is used up before the next has its turn."""
    for code in (500, 429, 503):
        server.faults.add(HttpStatus(code), verb="list", times=1)
    assert [client.list().status for _ in range(4)] == [500, 429, 503, 200]


def test_a_fault_ends_when_it_is_removed_or_all_are_cleared(
    server: ApiServer, client: Client
) -> None:
    """Or at the end of its block."""
    removed, _ = (server.faults.add(HttpStatus(code), verb="list") for code in (500, 503))
    assert client.list().status == 500
    removed.remove()
    removed.remove()
    assert client.list().status == 503
    server.faults.clear()
    with server.faults.add(HttpStatus(429)):
        assert client.list().status == 429
    assert client.list().status == 200


def test_hits_can_be_waited_for(server: ApiServer, client: Client) -> None:
    """wait_hit says whether the fault has acted as often as that within the timeout."""
    fault = server.faults.add(Reset(after_lines=4), verb="watch")
    assert fault.wait_hit(timeout=0) is False
    answer = client.watch()
    server.create(widget("late"))
    assert fault.wait_hit() is True
    assert fault.wait_hit(2, timeout=0) is False
    assert len(read_lines(answer)[0]) == 5


@pytest.mark.parametrize(
    ("fault", "lines", "broken"),
    [
        (EndEarly(), [], None),
        (StreamError(410), ["ERROR 410"], None),
        (Reset(), [], ProtocolError),
        (BlackHole(), [], ReadTimeoutError),
        (Delay(0.01), ["ADDED late"], ReadTimeoutError),
        (EndEarly(after_lines=1), ["ADDED late"], None),
        (StreamError(500, after_lines=1), ["ADDED late", "ERROR 500"], None),
        (Reset(after_lines=1), ["ADDED late"], ProtocolError),
        (BlackHole(after_lines=1), ["ADDED late"], ReadTimeoutError),
    ],
    ids=repr,
)
def test_a_fault_can_act_on_an_open_watch(
    server: ApiServer,
    connect: Callable[..., Client],
    fault: Fault,
    lines: list[str],
    broken: type[Exception] | None,
) -> None:
    """With open=True it acts at once, or after lines that are counted from then on."""
    watch = open_watch(connect(server, timeout=1))
    injection = server.faults.add(fault, verb="watch", resource="widgets", open=True)
    server.create(widget("late"))
    found, error = read_rest(watch)
    assert [in_short(line) for line in found[:-1]] == lines
    assert (error and type(error)) is broken
    assert injection.hits == 1


def test_several_faults_can_act_on_one_open_watch(server: ApiServer, client: Client) -> None:
    """An odd line comes at once; later lines are lost, doubled, cut, and come slowly."""
    watch = open_watch(client)
    for fault in (
        DuplicateLines(),
        LoseEvents("MODIFIED"),
        SlowDrip(size=50, seconds=0),
        Truncate(after_lines=2, ending=Ending.CLEAN),
        InjectLine(b"null"),
    ):
        server.faults.add(fault, verb="watch", open=True)
    server.patch("widgets/a", {"spec": {"note": "new"}})
    server.delete("widgets/b")
    server.delete("widgets/c")
    lines, error = read_rest(watch)
    assert error is None
    assert lines[0] == b"null"
    assert [in_short(line) for line in lines[1:3]] == ["DELETED b"] * 2
    assert lines[3].startswith(b'{"type":"DELETED"')
    assert len(lines[3]) < len(lines[2])


def test_a_fault_counts_the_open_watches_that_it_is_aimed_at(
    server: ApiServer, connect: Callable[..., Client]
) -> None:
    """In the order in which they were opened: skip passes over the first, times ends the fault."""
    client = connect(server, timeout=1)
    other = client.ask("GET", "/api/v1/namespaces?watch=1", stream=True)
    first, second, third = (open_watch(client) for _ in range(3))
    fault = server.faults.add(EndEarly(), resource="widgets", skip=1, times=1, open=True)
    assert fault.hits == 1
    assert read_rest(second) == ([b""], None)
    server.create(widget("late"))
    for watch in (first, third):
        assert b'"late"' in next(watch)
    assert len(read_some(other, lines=4)) == 4


def test_a_fault_acts_on_open_watches_and_on_later_ones(server: ApiServer, client: Client) -> None:
    """Until it is removed; without open=True it leaves the open ones alone."""
    first = open_watch(client)
    with server.faults.add(EndEarly(), verb="watch"):
        second = client.watch()
        assert read_lines(second) == ([b""], None)
        with server.faults.add(EndEarly(), verb="watch", open=True) as fault:
            assert read_rest(first) == ([b""], None)
            assert fault.hits == 1


@pytest.mark.parametrize(
    "fault",
    [
        HttpStatus(503),
        Refuse(),
        LoseAnswer(),
        RawAnswer(b""),
        ContentType(),
        CutChunks(),
        TruncateGzip(),
        EndlessHeaders(),
        Stale(),
        Compact(),
        Reset(after_bytes=1),
    ],
    ids=repr,
)
def test_a_fault_of_a_request_cannot_act_on_an_open_watch(
    server: ApiServer, client: Client, fault: Fault
) -> None:
    """The watch has been answered; the fault is refused, and not added."""
    with pytest.raises(ValueError, match="open watch"):
        server.faults.add(fault, open=True)
    assert (
        len(server.client().resources.get(api_version="ex.io/v1", kind="Widget").get().items) == 3
    )


def test_a_fault_of_lines_waits_for_a_watch(server: ApiServer, client: Client) -> None:
    """Other requests are left alone, and do not use it up."""
    fault = server.faults.add(EndEarly(), times=1)
    assert client.list().status == 200
    assert fault.hits == 0
    assert read_lines(client.watch()) == ([b""], None)


def test_refusal_cannot_be_aimed(server: ApiServer) -> None:
    """The port knows no verbs."""
    with pytest.raises(ValueError, match="closes the port for all"):
        server.faults.add(Refuse(), verb="list")


def test_faults_do_not_touch_the_conveniences_of_the_test_itself(server: ApiServer) -> None:
    """What a test does through the server's own methods always works."""
    server.faults.add(HttpStatus(500))
    assert len(server.list("widgets")) == 3
