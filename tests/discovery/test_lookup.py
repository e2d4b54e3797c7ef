"""`Discovery` against the embedded server, and against servers that misbehave."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NoReturn

import pytest

from dyninformer.discovery import Discovery, PrinterColumn
from dyninformer.discovery.lookup import KEPT, MISS_KEPT, SingleFlight
from dyninformer.errors import (
    AmbiguousResourceError,
    StoppedError,
    UnauthorizedError,
    UnknownResourceError,
    UnreachableError,
)
from dyninformer.resource import GroupVersionResource
from dyninformer.testing import ApiServer
from dyninformer.testing.clock import ManualClock
from dyninformer.testing.faults import BlackHole, ContentType, HttpStatus
from dyninformer.transport.requests import JsonReply
from dyninformer.watching.client import Source
from tests.conformance.shapes import ANYTHING, crd
from tests.discovery.answers import (
    EMPTY,
    Answers,
    aggregated,
    discovery_of,
    group,
    resource,
    serving,
    unreachable,
)

CERTIFICATES = GroupVersionResource("cert-manager.io", "v1", "certificates")
COLUMNS = [
    {"name": "Ready", "type": "string", "jsonPath": ".status.ready"},
    {"name": "Secret", "type": "string", "jsonPath": ".spec.secretName", "priority": 1},
]
STALE = {"metadata": {"name": "dead.io"}, "versions": [{"version": "v1", "freshness": "Stale"}]}


class OldServer:
    """A server that never heard of aggregated discovery, as every one before 1.26."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.host = source.host

    def get_json(
        self,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] = EMPTY,
        deadline: float = 30.0,
    ) -> JsonReply:
        """It sees plain JSON asked for, and sends no Etag."""
        del headers
        return self._source.get_json(path, query, {"Accept": "application/json"}, deadline)

    def reload_credentials(self) -> None:
        """As the other does."""
        self._source.reload_credentials()


class Listening(OldServer):
    """A server as it is, and the status of each of its answers."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.statuses: list[int] = []

    def get_json(
        self,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] = EMPTY,
        deadline: float = 30.0,
    ) -> JsonReply:
        """Passed on."""
        reply = self._source.get_json(path, query, headers, deadline)
        self.statuses.append(reply.status)
        return reply


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An API server with certificates."""
    with ApiServer() as api:
        shape = crd(
            "cert-manager.io",
            "certificates",
            "Certificate",
            ANYTHING,
            additionalPrinterColumns=COLUMNS,
        )
        shape["spec"]["names"] |= {"shortNames": ["cert", "certs"], "categories": ["all"]}
        api.install(shape)
        yield api


@pytest.fixture
def source(server: ApiServer) -> Iterator[Source]:
    """The way to it."""
    source = Source(server.client())
    yield source
    source.close()


@pytest.fixture(params=["aggregated", "legacy"])
def discovery(request: pytest.FixtureRequest, source: Source) -> Discovery:
    """Discovery by both forms."""
    return discovery_of(source if request.param == "aggregated" else OldServer(source))


def paths(server: ApiServer) -> list[str]:
    """What was asked."""
    return [request.path for request in server.requests]


def test_nothing_is_asked_before_somebody_wants_to_know(server: ApiServer, source: Source) -> None:
    """Making it costs no request."""
    before = len(server.requests)
    discovery_of(source)
    assert len(server.requests) == before


@pytest.mark.parametrize(
    "text",
    [
        "cert",
        "certificate",
        "Certificate",
        "certificates",
        "certificates.cert-manager.io",
        "certificates.v1.cert-manager.io",
        "cert-manager.io/v1/certificates",
    ],
)
def test_a_custom_resource_is_found_by_both_forms(discovery: Discovery, text: str) -> None:
    """With all that discovery tells of it."""
    found = discovery.resolve(text)
    assert found.gvr == CERTIFICATES
    assert (found.kind, found.singular, found.namespaced) == ("Certificate", "certificate", True)
    assert found.short_names == ("cert", "certs")
    assert found.categories == ("all",)
    assert found.watchable


def test_both_forms_tell_the_same(source: Source) -> None:
    """Every resource, in the same order."""
    assert discovery_of(source).all_versions() == discovery_of(OldServer(source)).all_versions()


def test_the_aggregated_form_costs_two_requests(server: ApiServer, source: Source) -> None:
    """And none for the next names."""
    before = len(server.requests)
    discovery = discovery_of(source)
    for text in ("cert", "po", "Deployment", "nodes"):
        discovery.resolve(text)
    assert paths(server)[before:] == ["/api", "/apis"]


def test_what_has_not_changed_is_not_sent_again(server: ApiServer, source: Source) -> None:
    """After invalidate() the server is asked with its Etag, answers 304, and nothing is lost."""
    listening = Listening(source)
    discovery = discovery_of(listening)
    before = discovery.resources()
    discovery.invalidate()
    assert discovery.resources() == before
    assert listening.statuses == [200, 200, 304, 304]
    server.install(crd("new.io", "things", "Thing", ANYTHING))
    discovery.invalidate()
    assert discovery.resolve("things").kind == "Thing"
    assert listening.statuses[4:] == [304, 200]


@pytest.mark.parametrize(
    "text", ["things", "thing", "th", "Thing", "things.new.io", "Thing.new.io"]
)
def test_a_name_is_found_as_soon_as_its_crd_is_installed(
    server: ApiServer, source: Source, text: str
) -> None:
    """Though the server was asked just before, and had no resource of that name then."""
    discovery = discovery_of(source)
    with pytest.raises(UnknownResourceError):
        discovery.resolve(text)
    things = crd("new.io", "things", "Thing", ANYTHING)
    things["spec"]["names"]["shortNames"] = ["th"]
    server.install(things)
    assert discovery.resolve(text).gvr == GroupVersionResource("new.io", "v1", "things")


def test_a_miss_is_not_believed_of_an_answer_that_is_older_than_the_question() -> None:
    """A lookup that begins while another one waits for its answer asks again if the name is new."""
    answers = serving()
    asked, release = threading.Event(), threading.Event()
    before = answers.table["/apis"]
    assert isinstance(before, JsonReply)

    def answer_late() -> JsonReply:
        answers.set("/apis", aggregated(group("new.io", resource("things", "Thing"))))
        asked.set()
        assert release.wait(30)
        return before

    answers.set("/apis", answer_late)
    discovery = discovery_of(answers)
    joined = threading.Event()
    share = discovery._catalogs.share

    def join(*args: Any) -> Any:
        joined.set()
        return share(*args)

    with ThreadPoolExecutor(2) as pool, pytest.MonkeyPatch.context() as patch:
        first = pool.submit(discovery.resolve, "po")
        assert asked.wait(30)
        patch.setattr(discovery._catalogs, "share", join)
        second = pool.submit(discovery.resolve, "things")
        assert joined.wait(30)
        release.set()
        assert first.result(30).kind == "Pod"
        assert second.result(30).kind == "Thing"


def test_a_name_that_nothing_has_costs_one_look_each_time() -> None:
    """Two small requests; a name that is known costs none."""
    answers = serving()
    discovery = discovery_of(answers)
    for looks, text in enumerate(("a", "b", "a"), 1):
        with pytest.raises(UnknownResourceError):
            discovery.resolve(text)
        assert len(answers.asked) == 2 * looks
    discovery.resolve("po")
    assert len(answers.asked) == 6


def test_what_was_found_is_believed_for_minutes() -> None:
    """Then it is asked again."""
    clock, answers = ManualClock(), serving()
    discovery = discovery_of(answers, clock=clock.now)
    discovery.resolve("po")
    clock.advance(KEPT - 1)
    discovery.resolve("po")
    assert len(answers.asked) == 2
    clock.advance(2)
    discovery.resolve("po")
    assert len(answers.asked) == 4


def test_many_who_ask_at_once_cost_one_look() -> None:
    """One of them asks, the others take what it gets."""
    answers = serving()
    everybody, release = threading.Barrier(9), threading.Event()
    document = answers.table["/api"]
    assert isinstance(document, JsonReply)

    def slowly() -> JsonReply:
        assert release.wait(30)
        return document

    answers.set("/api", slowly)
    discovery = discovery_of(answers)

    def ask() -> str:
        everybody.wait(30)
        return discovery.resolve("po").kind

    with ThreadPoolExecutor(8) as pool:
        asking = [pool.submit(ask) for _ in range(8)]
        everybody.wait(30)
        release.set()
        assert [each.result(30) for each in asking] == ["Pod"] * 8
    assert answers.asked == ["/api", "/apis"]


def test_who_comes_just_as_a_look_ends_takes_what_it_got(monkeypatch: pytest.MonkeyPatch) -> None:
    """It had found nothing kept before; it does not ask again."""
    answers = serving()
    discovery = discovery_of(answers)
    flight = discovery._catalogs

    def share(*args: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(flight, "share", SingleFlight.share.__get__(flight))
            assert discovery.resolve("po").kind == "Pod"  # another one, which is faster
        return SingleFlight.share(flight, *args)

    monkeypatch.setattr(flight, "share", share)
    assert discovery.resolve("po").kind == "Pod"
    assert answers.asked == ["/api", "/apis"]


def test_a_dead_api_group_harms_nobody_else() -> None:
    """What is Stale is named only where a miss may be due to it."""
    answers = serving(STALE, group("ex.io", resource("widgets", "Widget")))
    discovery = discovery_of(answers)
    assert discovery.resolve("widgets").gvr.group == "ex.io"
    assert discovery.problems() == {"dead.io/v1": "its API server is not available"}
    with pytest.raises(UnknownResourceError, match=r"may have it: dead\.io/v1 \(its API server"):
        discovery.resolve("gizmos")


def test_a_group_version_that_fails_harms_nobody_else(server: ApiServer, source: Source) -> None:
    """In the old form, each is asked alone, and one that fails is named."""
    server.faults.add(HttpStatus(503, text="service unavailable"), path="/apis/cert-manager.io/v1")
    discovery = discovery_of(OldServer(source))
    assert discovery.resolve("deploy").gvr.group == "apps"
    with pytest.raises(UnknownResourceError) as caught:
        discovery.resolve("cert")
    assert "may have it: cert-manager.io/v1 (it answers 503)" in str(caught.value)


def test_what_was_known_of_a_group_that_died_is_kept() -> None:
    """Its resources are found as before, until the server says that it has no such group."""
    alive = group("dead.io", resource("things", "Thing"))
    answers = serving(alive)
    discovery = discovery_of(answers)
    discovery.resolve("things")
    answers.set("/apis", aggregated(STALE))
    for _ in range(2):
        discovery.invalidate()
        assert discovery.resolve("things").gvr.group == "dead.io"
    answers.set("/apis", aggregated())
    discovery.invalidate()
    with pytest.raises(UnknownResourceError):
        discovery.resolve("things")


def test_an_ambiguous_name_is_an_error() -> None:
    """It names both."""
    answers = serving(
        group("a.io", resource("gizmos", "Gizmo")), group("b.io", resource("gizmos", "Gizmo"))
    )
    with pytest.raises(AmbiguousResourceError, match=r"gizmos\.a\.io and gizmos\.b\.io"):
        discovery_of(answers).resolve("Gizmo")


def test_no_server_is_said_with_its_address() -> None:
    """And with the name that was to be looked up."""
    with ApiServer() as server:
        client, url = server.client(), server.url
    source = Source(client)
    with pytest.raises(UnreachableError) as caught:
        discovery_of(source).resolve("cert")
    source.close()
    assert str(caught.value).startswith(f"cannot look up 'cert': cannot reach {url}: ")


@pytest.mark.parametrize(
    ("token", "error", "said"),
    [
        (
            "nobody's",
            UnauthorizedError,
            "refuses the credentials (401: Unauthorized). Renew them",
        ),
        (
            None,
            UnreachableError,
            'forbidden at {url} (User "stranger" cannot get path "/api"). Give the user',
        ),
    ],
)
def test_refusals_are_said_plainly(
    server: ApiServer, token: str | None, error: type[Exception], said: str
) -> None:
    """401 and 403, with what to do."""
    if token is None:
        token = server.access.add_user("stranger")
        server.faults.add(
            HttpStatus(403, 'forbidden: User "stranger" cannot get path "/api"', "Forbidden"),
            path="/api",
        )
    source = Source(server.client(token=token))
    discovery = discovery_of(source)
    with pytest.raises(error, match="cannot look up 'cert'") as caught:
        discovery.resolve("cert")
    with pytest.raises(error, match="cannot tell what the server serves"):
        discovery.resources()
    source.close()
    assert said.format(url=server.url) in str(caught.value)
    assert token not in str(caught.value)


def test_columns_cannot_be_read_with_credentials_that_are_refused(server: ApiServer) -> None:
    """As names cannot be looked up."""
    source = Source(server.client(token="nobody's"))
    with pytest.raises(UnauthorizedError, match=r"cannot tell the columns of c.*401"):
        discovery_of(source).columns(CERTIFICATES)
    source.close()


def test_refused_credentials_are_read_anew_once() -> None:
    """What a plugin or file gives then may be accepted."""
    answers = serving()
    good = answers.table["/api"]
    refused = JsonReply(401, {}, {"kind": "Status", "message": "Unauthorized"})
    answers.set("/api", lambda: good if answers.reloaded else refused)  # type: ignore[return-value, arg-type]
    assert discovery_of(answers).resolve("po").kind == "Pod"
    assert answers.reloaded == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>", "with no discovery document"),
        (b'{"kind": "PodList", "items": []}', "with no discovery document"),
        (b'{"kind": "APIGroupDiscoveryList", "items": 7}', "with no discovery document"),
        (b"[" * 100_000, "with no discovery document"),
    ],
)
def test_what_is_no_discovery_is_a_clean_error(
    server: ApiServer, source: Source, body: bytes, said: str
) -> None:
    """With a question that leads to the mistake."""
    server.faults.add(ContentType("application/json", body), path="/apis")
    with pytest.raises(UnreachableError) as caught:
        discovery_of(source).resolve("cert")
    assert said in str(caught.value)
    assert "Is this the address of a Kubernetes API server?" in str(caught.value)


def test_what_a_server_says_is_shown_without_control_characters() -> None:
    """A message cannot move the cursor, nor fill the screen."""
    answers = serving()
    message = "\x1b[2Jred\nalert" + "!" * 10_000
    answers.set("/api", JsonReply(503, {}, {"kind": "Status", "message": message}))
    with pytest.raises(UnreachableError) as caught:
        discovery_of(answers).resolve("cert")
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 600
    assert "overloaded, starting or broken (503: [2Jred alert!!!" in str(caught.value)


def test_a_server_where_no_group_answers_is_unreachable() -> None:
    """In the old form, if it dies between the list of groups and the first of them."""
    answers = Answers()
    answers.set("/api", JsonReply(200, {}, {"kind": "APIVersions", "versions": ["v1"]}))
    answers.set("/api/v1", unreachable)
    with pytest.raises(UnreachableError, match=r"none of the API groups of https://api\.test"):
        discovery_of(answers).resources()


def test_the_threads_of_the_old_form_end_with_it(source: Source) -> None:
    """None is left when the answer is there."""
    discovery_of(OldServer(source)).resources()
    left = [each for each in threading.enumerate() if each.name.startswith("dyninformer discovery")]
    for each in left:
        each.join(30)
    assert not any(each.is_alive() for each in left)


def test_stopping_ends_a_look_at_once(server: ApiServer, source: Source) -> None:
    """Closing the source ends the request that waits, and the threads that wait for it."""
    hole = server.faults.add(BlackHole(), path="/api")
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(discovery_of(source).resolve, "cert")
        while not hole.hits:
            threading.Event().wait(0.01)
        source.close()
        assert type(asking.exception(30)).__name__ == "StoppedError"


def test_scope_is_told_of_what_is_known(server: ApiServer, source: Source) -> None:
    """None is "cannot tell", also where the server cannot be asked."""
    discovery = discovery_of(source)
    assert discovery.scope(CERTIFICATES) is True
    assert discovery.scope(GroupVersionResource("", "v1", "nodes")) is False
    assert discovery.scope(GroupVersionResource("no.io", "v1", "things")) is None
    server.stop()
    discovery.invalidate()
    assert discovery.scope(CERTIFICATES) is True
    assert discovery_of(source).scope(CERTIFICATES) is None


def test_printer_columns_come_from_the_crd(source: Source) -> None:
    """In its order, with their priorities; a built-in resource has none."""
    discovery = discovery_of(source)
    assert discovery.columns(CERTIFICATES) == (
        PrinterColumn("Ready", "string", ".status.ready", 0),
        PrinterColumn("Secret", "string", ".spec.secretName", 1),
    )
    assert discovery.columns(GroupVersionResource("apps", "v1", "deployments")) == ()


def test_printer_columns_are_asked_for_once(server: ApiServer, source: Source) -> None:
    """And again after invalidate()."""
    discovery = discovery_of(source)
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/certificates.cert-manager.io"
    for _ in range(3):
        discovery.columns(CERTIFICATES)
    assert paths(server).count(path) == 1
    discovery.invalidate()
    discovery.columns(CERTIFICATES)
    assert paths(server).count(path) == 2


@pytest.mark.parametrize("status", [403, 404])
def test_who_may_not_see_crds_has_no_columns(
    server: ApiServer, source: Source, status: int
) -> None:
    """That is no error; it is asked again a moment later."""
    clock = ManualClock()
    discovery = discovery_of(source, clock=clock.now)
    with server.faults.add(HttpStatus(status), resource="customresourcedefinitions"):
        assert discovery.columns(CERTIFICATES) == ()
    clock.advance(MISS_KEPT + 1)
    assert len(discovery.columns(CERTIFICATES)) == 2


def test_a_crd_of_any_shape_gives_columns_or_none() -> None:
    """Wrong types are no columns."""
    answers = serving()
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/certificates.cert-manager.io"
    for spec in (None, 7, {"versions": 7}, {"versions": [{"name": 7}]}):
        answers.set(path, JsonReply(200, {}, {"spec": spec}))
        assert discovery_of(answers).columns(CERTIFICATES) == ()


def test_keys_of_lists_and_defaults_come_from_the_crd() -> None:
    """By patterns of paths; what is no schema declares nothing."""
    answers = serving()
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/certificates.cert-manager.io"
    rules = {
        "type": "array",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": {"properties": {"protocol": {"default": "TCP"}, "odd": 7}},
    }
    schema = {
        "properties": {
            "a.b": {"additionalProperties": rules},
            "bad": {"x-kubernetes-list-map-keys": [7], "properties": [], "default": None},
        }
    }
    version = {"name": "v1", "schema": {"openAPIV3Schema": schema}}
    answers.set(path, JsonReply(200, {}, {"spec": {"versions": [version]}}))
    discovery = discovery_of(answers)
    assert discovery.list_keys(CERTIFICATES) == {r".a\.b.*": ["port", "protocol"]}
    assert discovery.defaults(CERTIFICATES) == {r".a\.b.*[*].protocol": "TCP"}
    assert discovery.list_keys(GroupVersionResource("", "v1", "pods")) == {}


# -- one call for all threads that ask at the same time -----------------------------------


class Gate:
    """Work that waits to be let through, and counts how often it was begun."""

    def __init__(self) -> None:
        self.begun = 0
        self.first = threading.Event()
        self.open = threading.Event()

    def work(self) -> int:
        """Wait, and say how many have begun."""
        self.begun += 1
        self.first.set()
        assert self.open.wait(30)
        return self.begun


def test_all_who_come_meanwhile_share_one_answer() -> None:
    """Nobody else works on it before it is there; another thing does not wait for it."""
    single: SingleFlight[str, int] = SingleFlight()
    gate = Gate()

    def late() -> int:
        assert gate.open.is_set(), "two worked at the same time"
        return 99

    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(single.share, "a", gate.work)
        assert gate.first.wait(30)
        others: list[Future[int]] = [pool.submit(single.share, "a", late) for _ in range(4)]
        other = pool.submit(single.share, "b", lambda: 7)
        assert other.result(30) == 7
        gate.open.set()
        assert first.result(30) == 1
        assert {each.result(30) for each in others} <= {1, 99}


def test_an_error_is_shared_and_not_kept() -> None:
    """The next caller has the work done anew."""
    single: SingleFlight[str, int] = SingleFlight()

    def fail() -> NoReturn:
        raise LookupError("no")

    with pytest.raises(LookupError):
        single.share("a", fail)
    assert single.share("a", lambda: 3) == 3


def test_an_interrupt_is_for_one_alone() -> None:
    """A thread that waits for the interrupted one does the work in its place."""
    single: SingleFlight[str, int] = SingleFlight()
    begun, go = threading.Event(), threading.Event()

    def interrupted() -> NoReturn:
        begun.set()
        assert go.wait(30)
        raise KeyboardInterrupt

    def lead() -> str:
        with pytest.raises(KeyboardInterrupt):
            single.share("a", interrupted)
        return "interrupted"

    with ThreadPoolExecutor(2) as pool:
        leader = pool.submit(lead)
        assert begun.wait(30)
        follower = pool.submit(single.share, "a", lambda: 5)
        go.set()
        assert leader.result(30) == "interrupted"
        assert follower.result(30) == 5


def test_who_asks_in_the_middle_of_its_own_work_does_not_wait_for_itself() -> None:
    """As a signal handler does that comes meanwhile, on the same thread."""
    single: SingleFlight[str, int] = SingleFlight()
    assert single.share("a", lambda: single.share("a", lambda: 1) + 1) == 2
    assert single.share("a", lambda: 7) == 7


def test_a_lookup_ends_in_the_time_that_it_was_given() -> None:
    """A server that takes the request and says nothing has 30 s otherwise; those with time wait."""
    with ApiServer() as server:
        source = Source(server.client())
        discovery = Discovery(source)
        with ThreadPoolExecutor() as pool, server.faults.add(BlackHole()) as hole:
            patient = pool.submit(discovery.resolve, "pods")
            assert hole.wait_hit()
            with pytest.raises(
                UnreachableError, match=r"look up 'pods': .* not answered within 0\.1 s\."
            ):
                discovery.resolve("pods", timeout=0.1)
            assert not patient.done()
            source.close()
            with pytest.raises(StoppedError):
                patient.result()


def test_all_questions_end_in_the_patience_of_the_one_that_asks() -> None:
    """The CRD is asked for after discovery has answered."""
    with ApiServer() as server, server.faults.add(BlackHole()):
        source = Source(server.client())
        discovery = Discovery(source, patience=0.1)
        for ask in (discovery.resources, lambda: discovery.columns(CERTIFICATES)):
            with pytest.raises(UnreachableError, match=r"not answered within 0\.1 s"):
                ask()
        assert discovery.scope(CERTIFICATES) is None
        source.close()
