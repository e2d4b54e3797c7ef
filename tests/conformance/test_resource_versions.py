"""Which data a resourceVersion asks for, and what is wrong with a bad one."""

from __future__ import annotations

import pytest

from tests.conformance.cluster import Collection

FUTURE = "99999999"


def test_an_unset_version_is_the_newest_state(widgets: Collection) -> None:
    """Without a version the list is of now, and says the server's newest version."""
    created = widgets.fill("a")[0]
    answer = widgets.api.get(widgets.path, {"resourceVersion": ""})
    assert answer.names == ["a"]
    assert int(answer.version) >= int(created["metadata"]["resourceVersion"])


def test_a_version_means_at_least(widgets: Collection) -> None:
    """resourceVersion=X alone is any state not older than X."""
    old = widgets.fill("a")[0]["metadata"]["resourceVersion"]
    widgets.fill("b")
    widgets.version()
    answer = widgets.api.get(widgets.path, {"resourceVersion": old})
    assert answer.names == ["a", "b"]
    assert int(answer.version) > int(old)


@pytest.mark.parametrize("version", ["0", "written"])
def test_not_older_than_is_at_least(widgets: Collection, version: str) -> None:
    """NotOlderThan names what a version alone already means."""
    written = widgets.fill("a")[0]["metadata"]["resourceVersion"]
    widgets.version()
    asked = written if version == "written" else version
    params = {"resourceVersion": asked, "resourceVersionMatch": "NotOlderThan"}
    answer = widgets.api.get(widgets.path, params)
    assert answer.names == ["a"]
    assert int(answer.version) >= int(written)


def test_exact_is_that_very_state(widgets: Collection) -> None:
    """An exact list shows the past: what was changed since, added since, and deleted since."""
    widgets.fill("a", "b")
    version = widgets.version()
    widgets.merge("a", {"spec": {"size": 7}})
    widgets.api.delete(widgets.at("b"))
    widgets.fill("c")
    params = {"resourceVersion": version, "resourceVersionMatch": "Exact"}
    answer = widgets.api.get(widgets.path, params)
    assert (answer.names, answer.version) == (["a", "b"], version)
    assert "size" not in answer.json["items"][0]["spec"]


def test_exact_pages_keep_the_version(widgets: Collection) -> None:
    """The pages of an exact list are all of that version."""
    widgets.fill("a", "b")
    version = widgets.version()
    widgets.fill("c")
    params = {"resourceVersion": version, "resourceVersionMatch": "Exact", "limit": 1}
    first = widgets.api.get(widgets.path, params)
    second = widgets.api.get(widgets.path, {"limit": 1, "continue": first.token})
    assert (first.names, second.names, second.token) == (["a"], ["b"], "")
    assert {first.version, second.version} == {version}


@pytest.mark.parametrize("what", ["list", "exact", "get"])
def test_a_version_from_the_future_is_waited_for_then_refused(
    widgets: Collection, what: str
) -> None:
    """After three seconds a future version is a 504 that says which version there is."""
    widgets.fill("a")
    params = {"resourceVersion": FUTURE}
    if what == "exact":
        params["resourceVersionMatch"] = "Exact"
    answer = widgets.api.get(widgets.at("a") if what == "get" else widgets.path, params)
    body = answer.json
    current = body["message"].rpartition(" ")[2]
    assert current.isdigit()
    assert answer.headers["Retry-After"] == "1"
    assert body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"Timeout: Too large resource version: {FUTURE}, current: {current}",
        "reason": "Timeout",
        "details": {
            "causes": [
                {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            ],
            "retryAfterSeconds": 1,
        },
        "code": 504,
    }


@pytest.mark.parametrize("version", ["abc", "-1", "1.5"])
def test_a_version_that_is_no_number_is_refused(widgets: Collection, version: str) -> None:
    """A list's bad version is a 400 in Go's words."""
    answer = widgets.api.get(widgets.path, {"resourceVersion": version})
    assert answer.status == 400
    assert answer.json["message"] == (
        f'invalid resource version: resourceVersion: Invalid value: "{version}": '
        f'strconv.ParseUint: parsing "{version}": invalid syntax'
    )


_UNLESS = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
_SUPPORTED = 'supported values: "Exact", "NotOlderThan", ""'


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"resourceVersionMatch": "Exact"}, f"resourceVersionMatch: {_UNLESS}"),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            (
                'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden '
                'for resourceVersion "0"'
            ),
        ),
        (
            {"resourceVersionMatch": "Bogus", "resourceVersion": "5"},
            f'resourceVersionMatch: Unsupported value: "Bogus": {_SUPPORTED}',
        ),
        (
            {"resourceVersionMatch": "Exact", "continue": "x"},
            (
                f"[resourceVersionMatch: {_UNLESS}, resourceVersionMatch: Forbidden: "
                "resourceVersionMatch is forbidden when continue is provided]"
            ),
        ),
        (
            {"sendInitialEvents": "true"},
            "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
        ),
    ],
    ids=["match alone", "exact zero", "unknown match", "match with continue", "initial events"],
)
def test_options_that_contradict_each_other_are_invalid(
    widgets: Collection, params: dict[str, str], message: str
) -> None:
    """The answer is a 422 about ListOptions that lists each cause."""
    answer = widgets.api.get(widgets.path, params)
    body = answer.json
    assert (answer.status, body["reason"]) == (422, "Invalid")
    assert body["message"] == f'ListOptions.meta.k8s.io "" is invalid: {message}'
    assert body["details"]["group"] == "meta.k8s.io"
    assert body["details"]["kind"] == "ListOptions"
    causes = body["details"]["causes"]
    told = [f"{cause['field']}: {cause['message']}" for cause in causes]
    assert message in {told[0], f"[{', '.join(told)}]"}
