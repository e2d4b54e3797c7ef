"""The errors of the package: what they carry, and that other processes can read them."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from dyninformer import Fleet, errors, open_informer
from dyninformer.errors import DynInformerError
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import Refuse
from tests.public_names import named, public_names

MAPS = "v1/configmaps"
ARGUMENTS = {
    "message": "cannot do it.\nTry again",
    "status": {"kind": "Status", "reason": "Conflict"},
    "last": {"metadata": {"name": "a"}},
    "code": 409,
    "reason": "Conflict",
    "fields": ((".spec.color", "kubectl"),),
    "causes": (("spec.color", "Required value"),),
    "column": 5,
    "offset": 7,
}
"""What each error is made with, by the name of its parameter."""


def every_error() -> set[type[DynInformerError]]:
    """Each error of dyninformer.errors, and each that a public package exports."""
    found = [*vars(errors).values(), *map(named, public_names())]
    return {each for each in found if inspect.isclass(each) and issubclass(each, DynInformerError)}


def made(kind: type[DynInformerError]) -> DynInformerError:
    """An error with a value for each of its parameters."""
    if not inspect.isfunction(kind.__init__):  # a built-in's
        return kind(ARGUMENTS["message"])
    given: dict[str, Any] = {}
    for name, parameter in inspect.signature(kind).parameters.items():
        if name in ARGUMENTS or parameter.default is parameter.empty:
            given[name] = ARGUMENTS[name]
    return kind(**given)


def assert_same(found: BaseException, error: BaseException) -> None:
    """Compare type, message, arguments and attributes."""
    assert type(found) is type(error)
    assert (str(found), found.args) == (str(error), error.args)
    assert vars(found) == vars(error)


@pytest.mark.parametrize("kind", sorted(every_error(), key=str))
def test_every_error_survives_a_pickle(kind: type[DynInformerError]) -> None:
    """A process pool gets the type, the message and the attributes of an error, and its notes."""
    error = made(kind)
    error.add_note("in shard 3")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert_same(pickle.loads(pickle.dumps(error, protocol)), error)
    assert_same(copy.copy(error), error)


def provoked(server: ApiServer) -> Iterator[Exception]:
    """Errors as an informer raises them, with real objects in their attributes."""
    bob = server.client(token=server.access.add_user("bob"))
    with pytest.raises(DynInformerError) as caught:
        open_informer(MAPS, client=bob)
    yield caught.value
    with Fleet({"eu": bob}) as fleet:
        fleet.for_resource(MAPS)
        with pytest.raises(DynInformerError) as caught:
            fleet.sync(5)
        yield caught.value
    server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    with open_informer(MAPS, client=server.client()) as maps:
        for patch in ({"metadata": {"resourceVersion": "1"}}, {"data": {"a": 1}}):
            with pytest.raises(DynInformerError) as caught:
                maps.patch("a", "default", patch)
            yield caught.value
        with pytest.raises(DynInformerError) as caught:
            maps.informer.wait_for("delete", name="a", namespace="default", timeout=0.1)
        yield caught.value
        with server.faults.add(Refuse()), pytest.raises(DynInformerError) as caught:
            maps.informer.wait_fresh(0, timeout=0.1)
        yield caught.value


def test_errors_that_an_informer_raised_survive_a_pickle() -> None:
    """So do the statuses and objects in their attributes."""
    kinds = []
    with ApiServer(tls=True) as server:
        for error in provoked(server):
            assert_same(pickle.loads(pickle.dumps(error)), error)
            kinds.append(type(error).__name__)
    assert kinds == [
        "CacheSyncError",
        "CacheSyncError",
        "ConflictError",
        "InvalidError",
        "WaitTimeoutError",
        "StaleCacheError",
    ]
