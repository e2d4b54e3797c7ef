"""Parts of a cache cannot be sent to another process, and say what can."""

from __future__ import annotations

import copy
import pickle

import pytest

from dyninformer import DynamicSharedInformerFactory
from dyninformer.testing import ApiServer


@pytest.mark.parametrize(
    ("kind", "send"),
    [
        ("Event", r"event\.object"),
        ("Version", r"version\.object"),
        ("Snapshot", r"snapshot\.save\(path\) wrote"),
        ("Difference", r"difference\.rows\(\)"),
        ("ObjectDifference", r"\.old and \.new"),
    ],
)
def test_parts_of_a_cache_say_what_to_send_to_another_process(kind: str, send: str) -> None:
    """The TypeError names the class and what can be pickled; a shallow copy is the same object."""
    with (
        ApiServer() as server,
        DynamicSharedInformerFactory(server.client()) as factory,
    ):
        found = factory.for_resource("v1/namespaces", history=5)
        factory.sync(30)
        before = found.snapshot()
        found.patch("default", None, {"metadata": {"labels": {"a": "b"}}}, wait=True)
        difference = found.snapshot().diff(before)
        part = {
            "Event": next(found.informer.events()),
            "Version": found.history("default")[0],
            "Snapshot": before,
            "Difference": difference,
            "ObjectDifference": difference.changed[0],
        }[kind]
        for refused in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match=rf"^an? {kind} cannot be pickled.*{send}"):
                refused(part)
        assert copy.copy(part) is part
