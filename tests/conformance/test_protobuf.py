"""The layouts of protobuf bodies are those of the Go types."""

from __future__ import annotations

import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from dyninformer.testing.cluster.builtins import BUILTINS

pytestmark = pytest.mark.timeout(600)  # the first run on a machine compiles client-go

_TABLE = files("dyninformer.testing.api").joinpath("protobuf_messages.txt").read_text("ascii")


def test_the_layouts_are_those_of_the_go_types(clientgo: Path) -> None:
    """``clientgo protobuf < protobuf_messages.txt`` makes the same file again."""
    made = subprocess.run(
        [clientgo, "protobuf"], input=_TABLE, capture_output=True, text=True, check=True
    )
    assert made.stdout == _TABLE


def test_every_built_in_kind_has_a_layout() -> None:
    """Only CRDs and APIServices, which are types of other modules, cannot be sent as protobuf."""
    described = {line.partition(" = ")[0] for line in _TABLE.splitlines() if " = " in line}
    served = {f"{each.api_version} {each.kind}" for each in BUILTINS}
    assert {each.rpartition(" ")[2] for each in served - described} == {
        "CustomResourceDefinition",
        "APIService",
    }
