"""CRDs: from POST to served, through changes of the spec, to gone."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer.testing.api.representations import PlainJson
from dyninformer.testing.cluster.lists import ListOptions
from dyninformer.testing.cluster.log import GroupResource, Key
from dyninformer.testing.cluster.resources import TERMINATING_VERBS
from dyninformer.testing.cluster.schema import prepare_for_read
from dyninformer.testing.cluster.watches import Watch, open_watch
from dyninformer.testing.status import ApiError
from dyninformer.types import Object
from tests.testing.cluster.recordings import recorded
from tests.testing.cluster.small_cluster import (
    CRDS,
    OPEN,
    OPTIONS,
    SmallCluster,
    crd,
    without_chance,
)

GADGETS = GroupResource("life.io", "gadgets")
MULTS = GroupResource("mult.io", "mults")


def gadget_crd() -> Object:
    """The CRD of the recorded life cycle."""
    body: Object = recorded("crd-lifecycle", "create CRD")["request"]["body"]
    return body


def condition(obj: Object | None, kind: str) -> Object:
    """One of a CRD's conditions."""
    assert obj is not None
    return next((each for each in obj["status"]["conditions"] or () if each["type"] == kind), {})


def custom(small: SmallCluster, group: str, plural: str, name: str, **fields: Any) -> Object:
    """Create an instance in ns1."""
    resource = small.resource(plural, group)
    metadata = {"name": name, **fields.pop("metadata", {})}
    body = {"apiVersion": f"{group}/v1", "kind": resource.kind, "metadata": metadata, **fields}
    return small.writer.create(resource, "ns1", body, OPTIONS).object


def watch(small: SmallCluster, collection: GroupResource) -> Watch:
    """A watch of a collection, from now."""
    resource = small.cluster.resources.of(collection)[0]
    options = ListOptions(revision=small.cluster.log.revision)
    return open_watch(small.cluster.caches, resource, "", options, PlainJson())


def test_the_post_is_answered_as_recorded() -> None:
    """The answer shows null conditions and the defaults of names and conversion."""
    recording = recorded("crd-lifecycle", "create CRD")
    answer = SmallCluster().install(gadget_crd())
    assert without_chance(answer) == without_chance(recording["response"]["body"])
    assert list(answer["spec"]) == list(recording["response"]["body"]["spec"])


def test_a_new_crd_becomes_established_in_three_events() -> None:
    """ADDED without conditions, then names accepted, then Established, as recorded."""
    small = SmallCluster()
    small.install(gadget_crd())
    said = small.events(CRDS)
    assert [kind for kind, _ in said] == ["ADDED", "MODIFIED", "MODIFIED"]
    assert said[0][1]["status"]["conditions"] is None
    assert condition(said[1][1], "NamesAccepted")["reason"] == "NoConflicts"
    assert condition(said[1][1], "Established")["reason"] == "Installing"
    assert condition(said[2][1], "Established")["reason"] == "InitialNamesAccepted"
    deleted = recorded("crd-lifecycle", "DELETE CRD")["response"]["body"]
    wanted = deleted["metadata"]["managedFields"]
    assert without_chance(said[2][1]["metadata"]["managedFields"]) == without_chance(wanted)


def test_controllers_can_be_slow() -> None:
    """With a delay, a CRD is served only when its time has come."""
    small = SmallCluster(controller_delay=0.03)
    small.cluster.run_due()
    small.install(gadget_crd())
    assert not small.serves("gadgets", "life.io")
    for _ in range(4):
        small.clock.advance(0.03)
        small.cluster.run_due()
    assert small.serves("gadgets", "life.io")


def test_names_in_use_keep_a_crd_from_being_served_until_they_are_free() -> None:
    """A conflict of names is reported as recorded, and resolved when the other CRD goes."""
    small = SmallCluster()
    small.install(crd("confs", "Conf", group="conf.io"))
    recording = recorded("crd-lifecycle", "CRD with a names conflict (never Established)")
    theirs = recording["response"]["body"]
    other = {k: theirs[k] for k in ("apiVersion", "kind", "spec")}
    small.install({**other, "metadata": {"name": "others.conf.io"}})
    live = small.live(CRDS, "others.conf.io")
    assert live is not None
    assert without_chance(live["status"]) == without_chance(theirs["status"])
    assert not small.serves("others", "conf.io")
    small.delete(small.resource(CRDS.resource, CRDS.group), Key("", "confs.conf.io"))
    assert condition(small.live(CRDS, "others.conf.io"), "Established")["status"] == "True"
    assert small.serves("others", "conf.io")


def test_deleting_a_crd_takes_its_objects_along() -> None:
    """The CRD is marked, its objects go one by one, then it goes itself."""
    small = SmallCluster()
    small.install(gadget_crd())
    for name in ("a", "b", "c"):
        custom(small, "life.io", "gadgets", name)
    after = small.cluster.log.revision
    answer = small.delete(small.resource(CRDS.resource, CRDS.group), Key("", "gadgets.life.io"))
    theirs = recorded("crd-lifecycle", "DELETE CRD")["response"]["body"]
    assert without_chance(answer) == without_chance(theirs)
    instances = small.events(GADGETS, after)
    crds = small.events(CRDS, after)
    assert [kind for kind, _ in instances] == ["DELETED"] * 3
    assert [kind for kind, _ in crds] == ["MODIFIED", "MODIFIED", "DELETED"]
    reasons = [condition(obj, "Terminating")["reason"] for _, obj in crds]
    assert reasons == ["InstanceDeletionPending"] + ["InstanceDeletionInProgress"] * 2
    assert not small.serves("gadgets", "life.io")


def test_watches_of_a_deleted_crd_end_a_second_later() -> None:
    """Open watches hear every DELETED, and end 1.0 s after the CRD has gone."""
    small = SmallCluster()
    small.install(gadget_crd())
    custom(small, "life.io", "gadgets", "a")
    stream = watch(small, GADGETS)
    small.delete(small.resource(CRDS.resource, CRDS.group), Key("", "gadgets.life.io"))
    lines = stream.take()
    assert [line[:17] for line in lines] == [b'{"type":"DELETED"']
    assert not stream.ended
    small.clock.advance(1.0)
    stream.take()
    assert stream.ended


def test_a_finalizer_of_an_instance_keeps_the_crd_terminating() -> None:
    """Until the finalizer goes, the collection is served, and nothing new is created in it."""
    small = SmallCluster()
    small.install(gadget_crd())
    custom(small, "life.io", "gadgets", "fin", metadata={"finalizers": ["x.io/f"]})
    small.delete(small.resource(CRDS.resource, CRDS.group), Key("", "gadgets.life.io"))
    gadgets = small.resource("gadgets", "life.io")
    assert gadgets.verbs == TERMINATING_VERBS
    with pytest.raises(ApiError) as caught:
        custom(small, "life.io", "gadgets", "new")
    recording = recorded("crd-lifecycle", "create a CR while the CRD is Terminating")
    assert caught.value.body() == recording["response"]["body"]
    with pytest.raises(ApiError) as caught:
        small.install(gadget_crd())
    recording = recorded("crd-lifecycle", "POST CRD while the old one is terminating")
    assert caught.value.body() == recording["response"]["body"]
    small.merge(gadgets, Key("ns1", "fin"), {"metadata": {"finalizers": None}})
    assert small.live(CRDS, "gadgets.life.io") is None
    assert not small.serves("gadgets", "life.io")


def test_a_recreated_crd_is_another_one() -> None:
    """After deletion the same CRD can be made again; old watches hear nothing of its objects."""
    small = SmallCluster()
    first = small.install(gadget_crd())
    stream = watch(small, GADGETS)
    small.delete(small.resource(CRDS.resource, CRDS.group), Key("", "gadgets.life.io"))
    second = small.install(gadget_crd())
    custom(small, "life.io", "gadgets", "a")
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert stream.take() == []
    assert small.serves("gadgets", "life.io")


def test_a_change_of_the_spec_changes_what_is_read() -> None:
    """A new default and a dropped field show in objects whose version is the same."""
    before, after = (
        recorded("crd-schema-change", name)["response"]["body"]["items"][0]
        for name in (
            "list before",
            "list after a default was added and a field removed: same item RV, other content",
        )
    )
    small = SmallCluster()
    fields = {"a": {"type": "integer"}, "b": {"type": "integer"}}
    small.install(_def_crd(fields))
    old = small.resource("defs", "def.io")
    custom(small, "def.io", "defs", "d", spec=before["spec"])
    fields = {"a": {"type": "integer"}, "c": {"type": "string", "default": "dflt"}}
    crds = small.resource(CRDS.resource, CRDS.group)
    small.merge(crds, Key("", "defs.def.io"), {"spec": _def_crd(fields)["spec"]})
    new, stored = (
        small.resource("defs", "def.io"),
        small.live(GroupResource("def.io", "defs"), "d", "ns1"),
    )
    assert stored is not None
    assert new is not old
    assert prepare_for_read(old, stored)["spec"] == before["spec"]
    assert prepare_for_read(new, stored)["spec"] == after["spec"]
    assert "f:b" in repr(prepare_for_read(new, stored)["metadata"]["managedFields"])


def _def_crd(fields: Object) -> Object:
    spec = {"type": "object", "properties": fields}
    return crd("defs", "Def", {"type": "object", "properties": {"spec": spec}}, group="def.io")


def test_watches_end_a_second_after_a_change_of_the_spec() -> None:
    """Until then they deliver; a change of metadata alone ends nothing."""
    small = SmallCluster()
    small.install(gadget_crd())
    stream = watch(small, GADGETS)
    crds, key = small.resource(CRDS.resource, CRDS.group), Key("", "gadgets.life.io")
    small.merge(crds, key, {"metadata": {"labels": {"a": "b"}}})
    small.clock.advance(2.0)
    stream.take()
    assert not stream.ended
    small.merge(crds, key, {"spec": {"names": {"shortNames": ["gd"]}}})
    custom(small, "life.io", "gadgets", "late")
    assert len(stream.take()) == 1
    small.clock.advance(1.0)
    stream.take()
    assert stream.ended
    assert small.resource("gadgets", "life.io").short_names == ("gd",)


def mult_crd(**second: Any) -> Object:
    """A CRD of two versions."""
    body = crd("mults", "Mult", group="mult.io")
    v2 = {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": OPEN}}
    body["spec"]["versions"].append({**v2, **second})
    return body


def test_every_served_version_shows_the_same_objects() -> None:
    """An object written through one version is read in the other with that apiVersion."""
    small = SmallCluster()
    small.install(mult_crd())
    made = custom(small, "mult.io", "mults", "one", spec={"n": 1})
    v2 = small.resource("mults", "mult.io", "v2")
    seen = prepare_for_read(v2, made)
    assert seen["apiVersion"] == "mult.io/v2"
    assert {**seen, "apiVersion": made["apiVersion"]} == made
    changed = small.merge(v2, Key("ns1", "one"), {"spec": {"n": 2}})
    managers = [each["apiVersion"] for each in changed["metadata"]["managedFields"]]
    assert managers == ["mult.io/v1", "mult.io/v2"]


def test_a_version_that_is_no_longer_served_is_not_found() -> None:
    """A version with served: false is gone, and the others stay."""
    small = SmallCluster()
    small.install(mult_crd())
    assert [each.version for each in small.cluster.resources.of(MULTS)] == ["v2", "v1"]
    crds = small.resource(CRDS.resource, CRDS.group)
    small.merge(crds, Key("", "mults.mult.io"), {"spec": mult_crd(served=False)["spec"]})
    assert [each.version for each in small.cluster.resources.of(MULTS)] == ["v1"]


def test_a_new_storage_version_is_remembered() -> None:
    """Status lists every version that objects may be stored in, and holds the spec to it."""
    small = SmallCluster()
    small.install(mult_crd())
    changed = mult_crd(storage=True)["spec"]
    changed["versions"][0]["storage"] = False
    crds, key = small.resource(CRDS.resource, CRDS.group), Key("", "mults.mult.io")
    assert small.merge(crds, key, {"spec": changed})["status"]["storedVersions"] == ["v1", "v2"]
    with pytest.raises(ApiError) as caught:
        small.merge(crds, key, {"spec": {"versions": changed["versions"][1:]}})
    assert "v1 was previously a storage version" in caught.value.message


def _field(schema: Object) -> Object:
    return {"type": "object", "properties": {"a": schema}}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"scope": "Foo"}, 'spec.scope: Unsupported value: "Foo": supported values: "Cluster"'),
        ({"group": ""}, "spec.group: Required value"),
        ({"versions": []}, "status.storedVersions: Invalid value: null"),
        ({"names": {"plural": "bads"}}, "spec.names.kind: Required value"),
        ({"preserveUnknownFields": True}, "preserveUnknownFields: Invalid value: true: cannot"),
        ({"group": "foo.k8s.io"}, "protected groups must have approval annotation"),
        ({"conversion": {"strategy": "Webhook"}}, "required when strategy is set to Webhook"),
    ],
)
def test_a_wrong_crd_is_refused_in_the_servers_words(change: Object, complaint: str) -> None:
    """What a real server says of such a CRD is said here."""
    body = crd("bads", "Bad", group="bad.io")
    body["spec"].update(change)
    with pytest.raises(ApiError) as caught:
        SmallCluster().install(body)
    assert caught.value.code == 422
    assert complaint in caught.value.message


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ({}, "openAPIV3Schema.type: Required value: must not be empty at the root"),
        ({"type": "string"}, 'type: Invalid value: "string": must be object at the root'),
        (_field({}), "properties[a].type: Required value: must not be empty for specified"),
        (_field({"type": "array"}), "properties[a].items: Required value: must be specified"),
        (_field({"type": "foo"}), 'properties[a].type: Unsupported value: "foo"'),
        (
            _field({"type": "string", "default": 1}),
            'default: Invalid value: "integer":  in body must be of type string: "integer"',
        ),
        (_field({"type": "string", "pattern": "["}), "must be a valid regular expression"),
        (
            _field({"type": "array", "items": OPEN, "x-kubernetes-list-type": "map"}),
            "x-kubernetes-list-map-keys: Required value",
        ),
    ],
)
def test_a_schema_that_is_not_structural_is_refused(schema: Object, complaint: str) -> None:
    """What a real server says of such a schema is said here."""
    body = crd("bads", "Bad", group="bad.io")
    body["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    with pytest.raises(ApiError) as caught:
        SmallCluster().install(body)
    assert complaint in caught.value.message


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"names": {"plural": "xs"}}, "spec.names.plural"),
        ({"names": {"kind": "Other", "listKind": "OtherList"}}, "spec.names.kind"),
        ({"scope": "Cluster"}, "spec.scope"),
        ({"group": "x.io"}, "spec.group"),
    ],
)
def test_what_identifies_a_crd_cannot_change(change: Object, field: str) -> None:
    """Group, plural, kind and scope of an Established CRD are immutable."""
    small = SmallCluster()
    small.install(gadget_crd())
    crds = small.resource(CRDS.resource, CRDS.group)
    with pytest.raises(ApiError) as caught:
        small.merge(crds, Key("", "gadgets.life.io"), {"spec": change})
    causes = (caught.value.details or {})["causes"]
    assert [each["field"] for each in causes] == [field]


def test_a_resource_has_what_its_version_says() -> None:
    """Columns, selectable fields and subresources come from the CRD's version."""
    schema: Object = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"color": {"type": "string"}}},
        },
    }
    small = SmallCluster()
    small.install(
        crd(
            "paints",
            "Paint",
            schema,
            group="sel.io",
            scope="Cluster",
            subresources={"status": {}},
            selectableFields=[{"jsonPath": ".spec.color"}],
            additionalPrinterColumns=[{"name": "C", "type": "string", "jsonPath": ".spec.color"}],
        )
    )
    paints = small.resource("paints", "sel.io")
    assert [(each.name, each.path) for each in paints.columns or ()] == [("C", ".spec.color")]
    assert paints.selectable_fields == (".spec.color",)
    assert paints.status
    assert paints.scale is None
    assert not paints.namespaced
    assert paints.singular == "paint"
