"""Paths that no object can have, told from those that these objects do not have."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer import JSONPath
from dyninformer.discovery.declared import declared
from dyninformer.discovery.known import Known
from dyninformer.discovery.unknown_paths import PathCheck, Schema, unknown_path, whole_schema
from dyninformer.errors import UnreachableError
from tests.frames.objects import CERTIFICATES, CRD, PODS

SCHEMA = whole_schema(CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
TYPO = ".spec.isuerRef.name"


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        (TYPO, ".spec.issuerRef.name"),
        ("{.spec.isuerRef.name}", ".spec.issuerRef.name"),
        (".spec.isuerRef.nmae", ".spec.issuerRef.name"),
        ("spec.issuer.name", ".spec.issuerRef.name"),
        ("issuerRef.name", ".spec.issuerRef.name"),
        ("issuer", ".spec.issuerRef"),
        (".spec.name", ".spec.issuerRef.name"),
        (".metadata.nmae", ".metadata.name"),
        (".Kind", ".kind"),
        (".spec.dnsname[*]", ".spec.dnsNames[*]"),
        (".spec.dnsname[0]", ".spec.dnsNames[0]"),
        (".status.conditions.status", ".status.conditions[*].status"),
        (
            '.status.condition[?(@.type=="Ready")].status',
            '.status.conditions[?(@.type=="Ready")].status',
        ),
        (
            '.status.conditions[?(@.typ=="Ready")].status',
            '.status.conditions[?(@.type=="Ready")].status',
        ),
        ("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        ("$.spec.isuerRef.name", "$.spec.issuerRef.name"),
        (".spec.isuerRef..name", ".spec.issuerRef..."),
    ],
)
def test_the_nearest_path_is_proposed(path: str, meant: str) -> None:
    """A similar name there, the same name elsewhere, a condition, or each element of a list."""
    assert unknown_path(JSONPath(path), SCHEMA) == f"; did you mean {meant}?"


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        (".spec.zzz", ".spec has config, cpu, dnsNames, issuerRef, replicas, usages, weight"),
        (".zzz", "an object has apiVersion, kind, metadata, spec, status"),
        (".spec.dnsNames[*].x", ".spec.dnsNames[*] has no fields"),
        (".spec.replicas.x", ".spec.replicas has no fields"),
    ],
)
def test_without_a_similar_path_the_fields_are_named(path: str, advice: str) -> None:
    """Those of the last place that exists."""
    assert unknown_path(JSONPath(path), SCHEMA) == f"; {advice}"


@pytest.mark.parametrize(
    "path",
    [
        ".spec.issuerRef.name",
        ".spec.config.anything.below",
        ".spec.usages.any-key",
        ".spec.cpu.x",
        ".metadata.labels.a",
        ".metadata.labels['ex\\.io/a']",
        ".metadata.managedFields[*].manager",
        ".metadata.ownerReferences[0].name",
        '.status.conditions[?(@.type=="Ready")].status',
        '$.status.conditions[?(@.type=~"R")].nothing',
        ".spec.*.nothing",
        "..nothing",
        "{.spec.zzz} {.spec.yyy}",
        ".spec[0]",
    ],
)
def test_what_may_be_there_or_cannot_be_judged_is_not_reported(path: str) -> None:
    """Open maps, preserved fields, int-or-string, metadata, and paths of other kinds."""
    assert unknown_path(JSONPath(path), SCHEMA) is None


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        (None, ".spec.zzz"),
        ({"properties": {"spec": {"x-kubernetes-preserve-unknown-fields": True}}}, ".spec.zzz.x"),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, ".zzz"),
        ({"properties": {"spec": {}}}, ".spec.zzz"),
        ({"properties": {"spec": {"type": "array"}}}, ".spec[*].zzz"),
        ({"properties": {"spec": {"type": ["object"]}}}, ".spec.zzz"),
        (
            {"properties": {"spec": {"type": "object", "x-kubernetes-embedded-resource": True}}},
            ".spec.metadata.name",
        ),
    ],
)
def test_an_open_schema_judges_nothing(schema: Any, path: str) -> None:
    """Nothing is declared, or fields are preserved, or a whole object is embedded."""
    assert unknown_path(JSONPath(path), whole_schema(schema)) is None


class Asked:
    """Gives a schema, or none, and counts."""

    def __init__(self, schema: Schema | None = SCHEMA) -> None:
        self.schema = schema
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> Schema:
        """The schema; UnreachableError without one."""
        self.seconds.append(seconds)
        if self.schema is None:
            raise UnreachableError("it is away")
        return self.schema


def test_a_path_is_reported_once() -> None:
    """With or without braces; the message names the resource."""
    check = PathCheck("certificates.cert-manager.io", Asked())
    assert check.problems([TYPO]) == [
        f"certificates.cert-manager.io has no field {TYPO}; did you mean .spec.issuerRef.name?"
    ]
    assert check.problems([TYPO, f"{{{TYPO}}}", JSONPath(TYPO)]) == []


def test_nothing_is_asked_for_a_path_that_an_object_has() -> None:
    """A transform may have added it; a null is a value."""
    asked = Asked()
    check = PathCheck("certificates", asked)
    objects: list[Any] = [{"spec": {}}, {"spec": {"derived": None}}, b'{"spec":{"other":1}}']
    assert check.problems([".spec.derived", ".spec.other"], iter(objects)) == []
    assert check.problems([".spec.derived"], []) == []
    assert asked.seconds == []


def test_a_server_that_is_away_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The path is judged when the server has answered, and reads do not wait for that."""
    now = [100.0]
    monkeypatch.setattr("dyninformer.discovery.unknown_paths.time.monotonic", lambda: now[0])
    asked = Asked(None)
    check = PathCheck("certificates", asked)
    assert check.problems([TYPO], seconds=0.5) == check.problems([TYPO], seconds=0.5) == []
    assert asked.seconds == [0.5]
    now[0] += 11
    asked.schema = SCHEMA
    assert len(check.problems([TYPO], seconds=0.5)) == 1
    assert asked.seconds == [0.5, 0.0]


def test_a_program_that_makes_up_paths_does_not_fill_the_memory() -> None:
    """After a thousand of them none is checked any more."""
    check = PathCheck("certificates", Asked())
    assert len(check.problems([f".spec.zzz{at}" for at in range(1000)])) == 1000
    assert check.problems([TYPO]) == []


def test_a_crd_that_keeps_unknown_fields_judges_no_path() -> None:
    """So do old ones, whose spec says preserveUnknownFields."""
    crd = {"spec": {**CRD["spec"], "preserveUnknownFields": True}}
    assert Known(CERTIFICATES, lambda _: declared(crd, CERTIFICATES)).paths.problems([TYPO]) == []
    assert len(Known(CERTIFICATES, lambda _: declared(CRD, CERTIFICATES)).paths.problems([TYPO]))


def test_of_a_resource_without_a_crd_only_metadata_is_known() -> None:
    """It is the same for all."""
    check = Known(PODS).paths
    assert check.problems([".spec.nodeNam"]) == []
    assert check.problems([".metadata.nmae"]) == [
        "pods has no field .metadata.nmae; did you mean .metadata.name?"
    ]
