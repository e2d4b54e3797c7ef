"""Reads of an informer's cache."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from dyninformer.discovery.declared import Declared, declared
from dyninformer.discovery.known import Known
from dyninformer.errors import (
    JSONPathWarning,
    NotSyncedWarning,
    ObjectNotFoundError,
    SelectorError,
    UnknownIndexError,
)
from dyninformer.indexer import Indexer
from dyninformer.jsonpath import JSONPath, compound
from dyninformer.lister import GenericLister, KeyRules
from dyninformer.resource import GroupVersionResource
from dyninformer.store.codec import Codec
from dyninformer.store.store import Store
from tests.frames.objects import CRD, holding
from tests.frames.objects import certificate as made

CERTIFICATES = GroupVersionResource("cert-manager.io", "v1", "certificates")
BLOCKS = GroupVersionResource("crd.projectcalico.org", "v1", "ipamblocks")


def certificate(namespace: str, name: str, issuer: str = "ca", **labels: str) -> dict[str, Any]:
    """A certificate as small as a test needs it."""
    return {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"u-{namespace}-{name}",
            "resourceVersion": "7",
            "labels": labels,
            "creationTimestamp": "2026-01-02T03:04:05Z",
        },
        "spec": {"issuerRef": {"name": issuer}, "dnsNames": [f"{name}.example.com", "x"]},
    }


def filled(store: Store, *objects: dict[str, Any]) -> Store:
    """The store, with these objects added."""
    for obj in objects:
        store.apply([("ADDED", store.receive(msgspec.json.encode(obj)))])
    return store


@pytest.fixture
def lister() -> GenericLister:
    """Three certificates in two namespaces, by issuer."""
    store = Store(CERTIFICATES, indexers={"by-issuer": ".spec.issuerRef.name"})
    filled(
        store,
        certificate("prod", "shop", "letsencrypt", app="shop", tier="web"),
        certificate("prod", "mail", app="mail"),
        certificate("dev", "shop", app="shop"),
    )
    return GenericLister(store, lambda: True)


def test_an_object_is_found_by_name_and_namespace_or_by_key(lister: GenericLister) -> None:
    """Both spellings give the same object."""
    assert lister.get("shop", "prod") == lister.get("prod/shop")
    assert lister.get("shop", "prod")["spec"]["issuerRef"]["name"] == "letsencrypt"


def test_what_a_read_returns_belongs_to_the_caller(lister: GenericLister) -> None:
    """Changing it changes nothing that others read."""
    lister.get("prod/shop")["spec"].clear()
    assert lister.get("prod/shop")["spec"]["issuerRef"]["name"] == "letsencrypt"


def test_a_shared_object_is_decoded_once(lister: GenericLister) -> None:
    """shared=True hands the same dict to all who ask."""
    assert lister.get("prod/shop", shared=True) is lister.get("shop", "prod", shared=True)
    [by_index] = lister.by_index("by-issuer", "letsencrypt", shared=True)
    assert by_index is lister.get("prod/shop", shared=True)


def test_a_missing_object_is_an_error_that_names_it(lister: GenericLister) -> None:
    """The error says which object of which resource, and whether the cache is synced."""
    with pytest.raises(ObjectNotFoundError, match=r"certificates.v1.cert-manager.io 'prod/nope'"):
        lister.get("nope", "prod")
    with pytest.raises(LookupError, match="which is synced"):
        lister.get("prod/nope")


@pytest.mark.parametrize("given", [("prod", "shop"), ("shop/prod",)])
def test_a_swapped_name_and_namespace_get_a_hint(
    lister: GenericLister, given: tuple[str, ...]
) -> None:
    """Only if the object is there under the key that was likely meant."""
    hint = r"prod/shop is there: the name comes first, as in get\('shop', 'prod'\)"
    with pytest.raises(ObjectNotFoundError, match=hint):
        lister.get(*given)
    with pytest.raises(ObjectNotFoundError, match=r"which is synced$"):
        lister.get("nowhere", "shop")
    with pytest.raises(ObjectNotFoundError, match=hint):
        lister.snapshot().get(*given)


def test_a_missing_object_can_have_a_default(lister: GenericLister) -> None:
    """default= replaces the error, None too."""
    assert lister.get("prod/nope", default=None) is None
    assert lister.get("nope", "prod", default=5) == 5


def test_a_bare_name_of_a_namespaced_resource_is_refused(lister: GenericLister) -> None:
    """The mistake is told, with or without a default, and so is what to write instead."""
    with pytest.raises(ValueError, match=r"is namespaced: give the namespace too"):
        lister.get("shop")
    with pytest.raises(ValueError, match=r"get\('namespace/shop'\)"):
        lister.get("shop", default=None)


def test_a_namespace_given_twice_is_refused(lister: GenericLister) -> None:
    """A key and a namespace in one call are a mistake, not a missing object."""
    with pytest.raises(ValueError, match="not the namespace twice"):
        lister.get("prod/shop", "prod")


def test_a_cluster_scoped_object_has_a_bare_name() -> None:
    """Its name is its key; a namespace is refused."""
    block = {"metadata": {"name": "10-0-0-0-26", "uid": "u", "resourceVersion": "5"}}
    lister = GenericLister(filled(Store(BLOCKS), block), lambda: True)
    assert lister.get("10-0-0-0-26")["metadata"]["uid"] == "u"
    assert lister.find("10-0-0-0-26") is not None
    with pytest.raises(ValueError, match="is cluster-scoped: give the name alone"):
        lister.get("10-0-0-0-26", "prod")


def test_a_bare_name_is_of_the_one_namespace_that_is_watched() -> None:
    """There is nothing else that it could mean; ``in`` knows it, too."""
    store = filled(Store(CERTIFICATES), certificate("prod", "shop", app="shop"))
    lister = GenericLister(store, lambda: True, KeyRules(store, ["prod"]))
    assert lister.get("shop") == lister.get("shop", "prod") == lister.get("prod/shop")
    assert lister.get("shop", shared=True) is lister.get("prod/shop", shared=True)
    assert lister.get("mail", default=None) is None
    assert ("shop" in lister, "prod/shop" in lister, "mail" in lister) == (True, True, False)
    with pytest.raises(ObjectNotFoundError, match="'prod/mail' in the cache"):
        lister.get("mail")


def test_a_bare_name_needs_a_namespace_where_several_are_watched() -> None:
    """That objects are in namespaces is known, though none is held."""
    store = Store(CERTIFICATES)
    lister = GenericLister(store, lambda: True, KeyRules(store, ["prod", "dev"]))
    with pytest.raises(ValueError, match="is namespaced: give the namespace too, as get"):
        lister.get("shop")


def test_a_missing_object_of_another_namespace_is_told_what_is_watched() -> None:
    """It may well be there."""
    store = Store(CERTIFICATES)
    lister = GenericLister(store, lambda: True, KeyRules(store, ["prod"]))
    with pytest.raises(ObjectNotFoundError, match="synced, and of namespace prod alone"):
        lister.get("shop", "dev")


def test_a_compound_index_is_looked_up_by_its_parts() -> None:
    """A tuple with a text for each path, which may have a slash in it."""
    place = compound(".metadata.namespace", ".spec.issuerRef.name")
    store = Store(CERTIFICATES, indexers={"place": place, "issuer": ".spec.issuerRef.name"})
    filled(store, certificate("prod", "shop", "a/ca"), certificate("dev", "shop", "a/ca"))
    lister = GenericLister(store, lambda: True)
    indexer = Indexer(store, store.add_indexers, lister.check_index)
    (found,) = lister.by_index("place", ("prod", "a/ca"))
    assert found["metadata"]["namespace"] == "prod"
    assert lister.by_namespace("prod").by_index("place", ("prod", "a/ca")) == [found]
    assert lister.by_namespace("dev").by_index("place", ("prod", "a/ca")) == []
    assert lister.by_index("place", place.key("prod", "a/ca")) == [found]
    assert indexer.by_index("place", ("prod", "a/ca")) == [found]
    assert indexer.index_keys("place", ("prod", "a/ca")) == ["prod/shop"]
    assert len(lister.by_index("issuer", ("a/ca",))) == 2


@pytest.mark.parametrize(
    ("index", "value", "said"),
    [
        ("place", ("prod",), "give a tuple of 2, one for each of its paths"),
        ("place", ("prod", 5), "each part of it must be text"),
        ("place", ["prod", "ca"], "give text"),
        ("issuer", ("prod", "ca"), "give one text"),
        ("namespace", ("prod", "ca"), "give one text"),
        ("issuer", 5, "give '5'"),
        ("issuer", True, "give 'true'"),
        ("issuer", None, "give text"),
    ],
)
def test_what_no_index_value_can_be_is_a_type_error(index: str, value: Any, said: str) -> None:
    """It names the index, what was given, and what to give."""
    place = compound(".metadata.namespace", ".spec.issuerRef.name")
    store = Store(CERTIFICATES, indexers={"place": place, "issuer": ".spec.issuerRef.name"})
    with pytest.raises(TypeError, match=f"in index '{index}' is .*: {said}$"):
        GenericLister(store, lambda: True).by_index(index, value)


def test_find_looks_in_every_namespace(lister: GenericLister) -> None:
    """A bare name that one namespace has is found, one that none has is None."""
    found = lister.find("mail")
    assert found is not None
    assert found["metadata"]["namespace"] == "prod"
    assert lister.find("nope") is None
    assert lister.find("shop", "dev") is not None


def test_find_will_not_choose_between_namespaces(lister: GenericLister) -> None:
    """A bare name that several namespaces have is a ValueError that names them."""
    with pytest.raises(ValueError, match="in the namespaces dev, prod"):
        lister.find("shop")


def test_find_takes_a_condition(lister: GenericLister) -> None:
    """The first object for which it holds."""
    found = lister.find(lambda obj: obj["metadata"]["labels"]["app"] == "mail")
    assert found is not None
    assert found["metadata"]["name"] == "mail"
    assert lister.find(lambda obj: False) is None


@pytest.mark.parametrize(
    ("selector", "fields", "expected"),
    [
        (None, None, {"prod/shop", "prod/mail", "dev/shop"}),
        ("app=shop", None, {"prod/shop", "dev/shop"}),
        ("app=shop,tier", None, {"prod/shop"}),
        ("tier notin (web)", None, {"prod/mail", "dev/shop"}),
        ({"app": "shop", "tier": "web"}, None, {"prod/shop"}),
        (None, "spec.issuerRef.name=ca", {"prod/mail", "dev/shop"}),
        ("app=shop", "metadata.namespace!=dev", {"prod/shop"}),
        (None, {"metadata.name": "mail"}, {"prod/mail"}),
        (None, "spec.absent=", {"prod/shop", "prod/mail", "dev/shop"}),
    ],
)
def test_selectors_are_evaluated_here(
    lister: GenericLister, selector: Any, fields: Any, expected: set[str]
) -> None:
    """Label and field selectors, as text or as a dict, on any field."""
    found = lister.list(selector, field_selector=fields)
    assert {f"{o['metadata']['namespace']}/{o['metadata']['name']}" for o in found} == expected


def test_a_selector_that_cannot_be_read_is_refused_at_once(lister: GenericLister) -> None:
    """In the words of the API server."""
    with pytest.raises(SelectorError, match="found '=', expected"):
        lister.list("a=b=c")


def test_an_index_finds_what_has_the_value(lister: GenericLister) -> None:
    """An unknown index is told, with those that are known."""
    assert [o["metadata"]["name"] for o in lister.by_index("by-issuer", "letsencrypt")] == ["shop"]
    assert lister.by_index("by-issuer", "nobody") == []
    assert len(lister.by_index("namespace", "prod")) == 2
    with pytest.raises(UnknownIndexError, match="by-issuer"):
        lister.by_index("nope", "x")


class Counting(Codec):
    """A codec that counts what it unpacks."""

    unpacked = 0

    def plain(self, entry: bytes) -> bytes:
        """Unpack, and count."""
        self.unpacked += 1
        return super().plain(entry)


@pytest.mark.parametrize(("index", "value"), [("issuer", "ca"), ("namespace", "prod")])
def test_of_an_index_only_the_objects_of_the_namespace_are_decoded(index: str, value: str) -> None:
    """A namespace that is the beginning of another one's name is told apart from it."""
    codec = Counting()
    store = Store(CERTIFICATES, codec=codec, indexers={"issuer": ".spec.issuerRef.name"})
    filled(store, *(certificate(space, "a") for space in ("prod", "prod-2", "test")))
    lister = GenericLister(store, lambda: True)
    codec.unpacked = 0
    found = lister.by_namespace("prod").by_index(index, value)
    assert [obj["metadata"]["namespace"] for obj in found] == ["prod"]
    assert codec.unpacked == 1
    assert lister.by_namespace("other").by_index(index, value) == []


class Interrupting(Codec):
    """A codec that does something else when it is first asked to unpack."""

    def __init__(self) -> None:
        super().__init__()
        self.acts: list[Callable[[], None]] = []

    def plain(self, entry: bytes) -> bytes:
        """Unpack, after what is to be done before."""
        self._act()
        return super().plain(entry)

    def decode(self, entry: bytes) -> dict[str, Any]:
        """Unpack and decode, after what is to be done before."""
        self._act()
        return super().decode(entry)

    def _act(self) -> None:
        while self.acts:
            self.acts.pop()()


@pytest.mark.parametrize("shared", [False, True])
def test_what_an_index_finds_is_of_one_moment(shared: bool) -> None:
    """An object that leaves the value, or goes, while the others are decoded is as it was."""
    codec = Interrupting()
    store = Store(CERTIFICATES, codec=codec, indexers={"issuer": ".spec.issuerRef.name"})
    filled(store, *(certificate("prod", name) for name in ("a", "b", "c")))

    def change() -> None:
        moved, gone = certificate("prod", "b", "other"), certificate("prod", "c")
        for obj, kind in ((moved, "MODIFIED"), (gone, "DELETED")):
            obj["metadata"]["resourceVersion"] = "8"
            store.apply([(kind, store.receive(msgspec.json.encode(obj)))])  # type: ignore[list-item]

    codec.acts.append(change)
    lister = GenericLister(store, lambda: True)
    found = lister.by_index("issuer", "ca", shared=shared)
    assert [obj["metadata"]["name"] for obj in found] == ["a", "b", "c"]
    assert {obj["spec"]["issuerRef"]["name"] for obj in found} == {"ca"}
    assert [obj["metadata"]["name"] for obj in lister.by_index("issuer", "ca")] == ["a"]


def test_the_lister_is_a_collection(lister: GenericLister) -> None:
    """Length, keys, membership and iteration, as of any collection; an empty one is still true."""
    assert len(lister) == 3
    assert sorted(lister.keys()) == ["dev/shop", "prod/mail", "prod/shop"]
    assert "prod/shop" in lister
    assert "prod/nope" not in lister
    assert 5 not in lister
    assert {o["metadata"]["name"] for o in lister} == {"shop", "mail"}
    assert GenericLister(Store(BLOCKS), lambda: True)


def test_iteration_is_over_one_moment(lister: GenericLister) -> None:
    """What is written while one iterates is not seen."""
    objects = iter(lister)
    next(objects)
    filled(lister._store, certificate("prod", "later"))
    assert len(list(objects)) == 2


def test_one_namespace_reads_alike(lister: GenericLister) -> None:
    """by_namespace gives the same reads with bare names."""
    prod = lister.by_namespace("prod")
    assert prod.get("shop")["metadata"]["namespace"] == "prod"
    assert prod.get("nope", default=None) is None
    assert len(prod) == 2
    assert sorted(prod.keys()) == ["prod/mail", "prod/shop"]
    assert [o["metadata"]["name"] for o in prod.list("tier=web")] == ["shop"]
    assert "shop" in prod
    assert "prod/shop" in prod
    assert "dev/shop" not in prod
    assert prod.by_index("by-issuer", "ca")[0]["metadata"]["name"] == "mail"
    found = prod.find("mail")
    assert found is not None
    assert {o["metadata"]["name"] for o in prod} == {"shop", "mail"}
    assert prod.select({"issuer": ".spec.issuerRef.name"})[0]["issuer"]
    with pytest.raises(ValueError, match="is no namespace"):
        lister.by_namespace("a/b")


def test_select_makes_a_row_per_object(lister: GenericLister) -> None:
    """One value is the value, none is None, several are a list."""
    rows = lister.select(
        {"issuer": "{.spec.issuerRef.name}", "hosts": ".spec.dnsNames[*]", "none": ".spec.x"}
    )
    assert {
        "namespace": "prod",
        "name": "mail",
        "issuer": "ca",
        "hosts": ["mail.example.com", "x"],
        "none": None,
    } in rows
    assert len(rows) == 3


def test_to_frame_gives_a_data_frame(lister: GenericLister) -> None:
    """Rows become a pandas DataFrame; without columns it has those that kubectl shows."""
    pytest.importorskip("pandas")
    frame = lister.to_frame({"issuer": ".spec.issuerRef.name"})
    assert sorted(frame.columns) == ["issuer", "name", "namespace"]
    assert frame.groupby("issuer").size().to_dict() == {"ca": 2, "letsencrypt": 1}
    assert lister.to_frame()["Age"].dt.year.tolist() == [2026] * 3


READS: dict[str, Callable[[GenericLister], object]] = {
    "get": lambda lister: lister.get("prod/shop", default=None),
    "find": lambda lister: lister.find("mail"),
    "list": lambda lister: lister.list(),
    "keys": lambda lister: lister.keys(),
    "len": len,
    "in": lambda lister: "a" in lister,
    "iteration": list,
    "by_index": lambda lister: lister.by_index("namespace", "prod"),
    "select": lambda lister: lister.select({}),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_before_the_first_sync_warns_once(name: str) -> None:
    """Whichever read comes first, the caller's own line is shown, and only once."""
    lister = GenericLister(Store(CERTIFICATES), lambda: False)
    with pytest.warns(NotSyncedWarning, match="before its first sync"):
        READS[name](lister)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        READS[name](lister)


TYPO = ".spec.isuerRef.name"
WITH_A_TYPO: dict[str, Callable[[GenericLister], object]] = {
    "list": lambda lister: lister.list(field_selector="spec.isuerRef.name=ca"),
    "not": lambda lister: lister.list(field_selector={TYPO: "ca"}),
    "namespace": lambda lister: lister.by_namespace("prod").list(field_selector=f"{TYPO}!=ca"),
    "select": lambda lister: lister.select({"issuer": TYPO}),
    "sort_by": lambda lister: lister.select({}, sort_by=f"-{TYPO}"),
    "field_selector": lambda lister: lister.select({}, field_selector=f"{TYPO}=ca"),
    "to_frame": lambda lister: lister.to_frame({"issuer": JSONPath(TYPO)}, labels="app"),
    "by_index": lambda lister: lister.by_index("typo", "ca"),
    "index": lambda lister: lister.select({}, index=("typo", "ca")),
    "snapshot": lambda lister: lister.snapshot().list(field_selector=f"{TYPO}=ca"),
}


@pytest.fixture
def certificates() -> GenericLister:
    """Two certificates whose CRD is known, and indexes of which one has a typo."""
    spec = {"issuerRef": {"name": "ca"}}
    return holding(
        made("a", spec=spec),
        made("b", spec=spec),
        indexers={"typo": TYPO, "good": ".spec.issuerRef.name"},
    )


@pytest.mark.parametrize("name", WITH_A_TYPO)
def test_a_path_that_no_object_can_have_warns_once(certificates: GenericLister, name: str) -> None:
    """Wherever it is given; the warning shows the caller's line and the nearest path."""
    with pytest.warns(JSONPathWarning, match="did you mean .spec.issuerRef.name?") as warned:
        WITH_A_TYPO[name](certificates)
    assert [each.filename for each in warned] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for read in WITH_A_TYPO.values():
            read(certificates)


def test_a_path_that_an_object_may_have_does_not_warn(certificates: GenericLister) -> None:
    """It finds nothing here, which is an answer; nor does anything warn of an empty cache."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert certificates.list(field_selector="spec.issuerRef.kind=Issuer") == []
        assert certificates.by_index("good", "other") == []
        columns = {"any": ".spec.config.any", "label": ".metadata.labels.any"}
        assert len(certificates.select(columns, sort_by=["name", "-any"])) == 2
        assert holding().list(field_selector=f"{TYPO}=ca") == []


def test_a_field_that_a_transform_has_added_does_not_warn() -> None:
    """The cached objects have it, whatever the schema says."""
    derived = holding(made("a", spec={"derived": "x"}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert derived.list(field_selector="spec.derived=y") == []


def test_in_an_event_loop_no_read_waits_for_a_crd() -> None:
    """It is fetched in the background; elsewhere a read waits half a second at most."""
    seconds: list[float] = []

    def ask(patience: float) -> Declared:
        seconds.append(patience)
        return declared(CRD, CERTIFICATES)

    def opened() -> GenericLister:
        store = filled(Store(CERTIFICATES), certificate("prod", "shop"))
        return GenericLister(store, lambda: True, known=Known(CERTIFICATES, ask))

    async def main() -> None:
        opened().list(field_selector=f"{TYPO}=ca")

    with pytest.warns(JSONPathWarning, match="isuerRef"):
        asyncio.run(main())
    with pytest.warns(JSONPathWarning, match="isuerRef"):
        opened().list(field_selector=f"{TYPO}=ca")
    assert seconds == [0.0, 0.5]
