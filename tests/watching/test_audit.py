"""One audit of a scope, without a network: what it believes, and what it asks for again."""

from __future__ import annotations

import base64
import json
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dyninformer.errors import AuditError
from dyninformer.options import DROP
from dyninformer.store.store import Store
from dyninformer.threads import Bell, Deadline
from dyninformer.transport.requests import Request
from dyninformer.types import Names
from dyninformer.watching.audit import ScopeAudit, read_from
from dyninformer.watching.session import Repair
from dyninformer.watching.states import Scope
from tests.conformance.wire import until
from tests.watching.talk import WIDGETS

PATIENCE = 10.0
JSON = {"Content-Type": "application/json"}
Versions = dict[str, str]


def metadata(name: str, version: str) -> dict[str, Any]:
    """An object of which nothing else matters; its uid is its name's."""
    found = {"name": name, "namespace": "d", "uid": f"u-{name}", "resourceVersion": version}
    return {"metadata": found}


def token(start: str) -> str:
    """Where the next page begins."""
    said = json.dumps({"v": "meta.k8s.io/v1", "rv": 20, "start": start})
    return base64.urlsafe_b64encode(said.encode()).decode().rstrip("=")


class Answered:
    """An answer that has come."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        self.status = status
        self.headers: Mapping[str, str] = JSON
        self._body = json.dumps(body).encode()

    def chunks(self) -> Generator[bytes, None, None]:
        """All at once."""
        yield self._body

    def body(self) -> bytes:
        """All of it."""
        return self._body

    def allow_silence(self, seconds: float) -> None:
        """It is all there."""

    def close(self) -> None:
        """Nothing is open."""


class Dripping(Answered):
    """An answer that comes a byte at a time, and has no end for much longer than it may take."""

    def __init__(self) -> None:
        super().__init__(200, {})
        self.allowed: list[float] = []

    def chunks(self) -> Generator[bytes, None, None]:
        """White space."""
        yield b'{"kind":"WidgetList","metadata":{"resourceVersion":"20"},"items":['
        much_later = Deadline(PATIENCE)
        while not much_later.over:
            yield b" "
        raise AssertionError("somebody still reads")

    def allow_silence(self, seconds: float) -> None:
        """Note it."""
        self.allowed.append(seconds)


class Server:
    """What lists show is ``cached``, in pages of two, and ``stored`` what is asked for by name."""

    def __init__(self, cached: Versions, stored: Versions, *, begins: str = "/d/") -> None:
        self.cached = cached
        self.stored = stored
        self.begins = begins
        self.by_name = 200
        self.refused: list[int] = []
        self.credentials = 0
        self.asked: list[Request] = []
        self._told = 0

    def list(self, request: Request) -> Any:
        """Answer."""
        self.asked.append(request)
        query = dict(request.query)
        if self.refused:
            return Answered(self.refused.pop(0), {"kind": "Status", "message": "no", "code": 0})
        if "fieldSelector" in query:
            name = query["fieldSelector"].removeprefix("metadata.name=")
            if self.by_name != 200:
                return Answered(self.by_name, {"kind": "Status", "message": "no"})
            return self._listed([name] if name in self.stored else [], self.stored, "")
        names = sorted(self.cached)
        if "continue" in query:
            names = names[self._told :]
        page, rest = names[:2], names[2:]
        self._told = len(self.cached) - len(rest)
        more = token(f"{self.begins}{page[-1]}") if rest else ""
        return self._listed(page, self.cached, more)

    def _listed(self, names: Names, versions: Versions, continue_: str) -> Answered:
        said = {"resourceVersion": "20", "continue": continue_}
        items = [metadata(name, versions[name]) for name in names]
        return Answered(200, {"kind": "WidgetList", "metadata": said, "items": items})

    def reload_credentials(self) -> None:
        """Others are there."""
        self.credentials += 1


class Watched:
    """A store, and a reflector that notes what it is to put right."""

    def __init__(self, held: Versions, version: str = "20") -> None:
        self.store = Store(WIDGETS)
        for name, each in held.items():
            self.hold(name, each)
        self.scope = Scope(gvr=WIDGETS)
        self.version = version
        self.repairs: list[Repair] = []
        self.takes = True
        self.bell = Bell()

    def hold(self, name: str, version: str) -> None:
        """The watch has told it."""
        received = self.store.receive(json.dumps(metadata(name, version)).encode())
        self.store.apply([("MODIFIED", received)])

    def takes_repairs(self) -> bool:
        """Those by name."""
        return self.takes

    def repair(self, repair: Repair) -> None:
        """It is put right at once, or not at all."""
        self.repairs.append(repair)
        if self.takes:
            repair.settled.update(repair.keys)
        repair.version = self.version
        repair.over = True

    def audit(self, server: Server, *, after: str = "", timeout: float | None = None) -> ScopeAudit:
        """An audit that has ended."""
        audit = ScopeAudit(
            self,  # type: ignore[arg-type]
            self.store,
            server,  # type: ignore[arg-type]
            Deadline(timeout),
            bell=self.bell,
            stopped=lambda: False,
            after=after,
        )
        audit.run()
        return audit


def test_what_is_different_is_put_right_when_that_can_be_done() -> None:
    """A watch that follows a failure, say, has to come to where it was before."""
    watched = Watched({"a": "5"})
    watched.takes = False

    def can() -> None:
        until(lambda: watched.bell._sleepers)
        watched.takes = True
        watched.bell.ring()

    with ThreadPoolExecutor() as pool:
        done = pool.submit(can)
        audit = watched.audit(Server({"a": "7"}, {"a": "7"}), timeout=30)
        done.result()
    assert [repair.keys for repair in watched.repairs] == [("d/a",)]
    assert not watched.repairs[0].by_list
    assert audit.different == {}


def test_where_what_is_awaited_does_not_come_the_collection_is_read_anew() -> None:
    """A server that sends no bookmarks, say, and on which nothing happens."""
    watched = Watched({"a": "5"})
    watched.takes = False
    watched.audit(Server({"a": "7"}, {"a": "7"}), timeout=0.2)
    assert [repair.by_list for repair in watched.repairs] == [True]


def test_what_the_watch_cache_has_lost_is_found_in_etcd() -> None:
    """The list says that all is as it is held; asked for by name, two are not."""
    held = {"a": "5", "b": "6", "c": "7"}
    server = Server(held, {"a": "5", "b": "16"})
    watched = Watched(held)
    audit = watched.audit(server)
    assert [sorted(repair.keys) for repair in watched.repairs] == [["d/b", "d/c"]]
    assert (audit.from_etcd, audit.compared, audit.different) == (3, 3, {})


def test_no_more_is_compared_with_etcd_than_the_server_has() -> None:
    """What was deleted is asked for by name as well, and is none of what there is."""
    server = Server({"a": "5"}, {"a": "5"})
    audit = Watched({"a": "5", "gone": "6"}).audit(server)
    assert audit.sampled == ["d/a", "d/gone"]
    assert (audit.from_etcd, audit.compared) == (1, 1)


def test_a_list_that_was_read_from_etcd_is_enough() -> None:
    """So its pages say; nothing is asked for by name."""
    held = {"a": "5", "b": "6", "c": "7"}
    server = Server(held, held, begins="d/")
    audit = Watched(held).audit(server)
    assert (audit.from_etcd, audit.sampled, len(server.asked)) == (3, [], 2)


def test_each_audit_asks_for_other_objects() -> None:
    """It goes on after the last one, and begins anew at the end."""
    held = {f"n{number:03}": "5" for number in range(70)}
    watched = Watched(held)
    first = watched.audit(Server(held, held))
    assert first.sampled == [f"d/n{number:03}" for number in range(50)]
    second = watched.audit(Server(held, held), after=first.sampled[-1])
    rest = [*range(50, 70), *range(30)]
    assert second.sampled == [f"d/n{number:03}" for number in rest]


def test_what_etcd_says_counts_for_more_than_a_list() -> None:
    """A watch cache that is behind makes no difference."""
    watched = Watched({"a": "15"})
    audit = watched.audit(Server({"a": "5"}, {"a": "15"}))
    assert (watched.repairs, audit.different) == ([], {})


def test_what_cannot_be_asked_for_by_name_is_not_sampled() -> None:
    """What the list has shown is put right all the same."""
    server = Server({"a": "16"}, {})
    server.by_name = 400
    watched = Watched({"a": "5", "b": "6"})
    audit = watched.audit(server)
    assert [sorted(repair.keys) for repair in watched.repairs] == [["d/a", "d/b"]]
    assert audit.from_etcd == 0


def test_what_has_changed_after_the_list_is_no_difference() -> None:
    """It is newer than the list's version: added, changed, or deleted and there again."""
    watched = Watched({"a": "21", "new": "22"})
    audit = watched.audit(Server({"a": "5"}, {"a": "5"}))
    assert (watched.repairs, audit.different) == ([], {})


def test_a_state_that_the_server_does_not_have_is_a_difference() -> None:
    """It is newer than the server's, and not newer than the list: of another past (S30)."""
    watched = Watched({"a": "15"})
    watched.audit(Server({"a": "5"}, {"a": "5"}))
    assert [repair.keys for repair in watched.repairs] == [("d/a",)]


def test_another_uid_at_the_same_version_is_a_difference() -> None:
    """It is another object."""
    watched = Watched({})
    other = metadata("a", "5")
    other["metadata"]["uid"] = "another"
    watched.store.apply([("ADDED", watched.store.receive(json.dumps(other).encode()))])
    watched.audit(Server({"a": "5"}, {"a": "5"}))
    assert [repair.keys for repair in watched.repairs] == [("d/a",)]


def test_what_cannot_be_put_right_is_reported() -> None:
    """After a few tries it is left to the next audit."""
    watched = Watched({"a": "5"}, version="9")  # the watch has not come so far
    audit = watched.audit(Server({"a": "16"}, {"a": "16"}), timeout=0.2)
    assert audit.different == {"d/a": ("u-a", "16")}
    assert audit.repaired == {}


def test_credentials_that_are_refused_are_read_anew() -> None:
    """Once; then it is an error."""
    server = Server({"a": "5"}, {"a": "5"})
    server.refused = [401]
    assert Watched({"a": "5"}).audit(server).compared == 1
    assert server.credentials == 1
    server.refused = [401, 401]
    with pytest.raises(AuditError, match="the credentials were refused"):
        Watched({"a": "5"}).audit(server)


@pytest.mark.parametrize("metadata_only", [True, False])
def test_a_transform_sees_what_it_always_sees(metadata_only: bool) -> None:
    """Whole objects are asked for where the informer asks for them, and nowhere else."""
    watched, server = Watched({}), Server({"a": "5"}, {"a": "5"})
    watched.store = Store(WIDGETS, transform=lambda _: DROP, metadata_only=metadata_only)
    watched.scope = Scope(gvr=WIDGETS, metadata_only=metadata_only)
    assert watched.audit(server).different == {}
    asked = server.asked[0].headers["Accept"]
    assert ("PartialObjectMetadataList" in asked) == metadata_only


def test_an_answer_that_comes_slowly_is_not_read_for_longer_than_the_timeout() -> None:
    """However often a byte of it comes, and no silence within it may take longer either."""
    answer = Dripping()
    server = Server({}, {})
    server.list = lambda request: answer  # type: ignore[method-assign]
    with pytest.raises(AuditError, match="the time is over"):
        Watched({"a": "1"}).audit(server, timeout=0.1)
    assert all(seconds <= 0.1 for seconds in answer.allowed)


def test_an_item_whose_key_cannot_be_read_lets_nothing_be_deleted() -> None:
    """It may be any of those that are held."""

    class Odd(Server):
        def _listed(self, names: Names, versions: Versions, continue_: str) -> Answered:
            said = {"resourceVersion": "20", "continue": ""}
            items = [{"metadata": {"name": 7}}]
            return Answered(200, {"kind": "WidgetList", "metadata": said, "items": items})

    watched = Watched({"a": "5"})
    assert watched.audit(Odd({}, {})).different == {}


@pytest.mark.parametrize("said", ["", "x", "bm8ganNvbg", token("a/b")[:-3] + "!!!"])
def test_any_token_may_come(said: str) -> None:
    """They are opaque: what is not known says nothing."""
    assert read_from(said) == "unknown"
