"""What a user may choose of one informer."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from typing import Any, TypedDict, Unpack, get_type_hints

import pytest

from dyninformer.options import (
    DROP,
    ListOptions,
    ResourceOptions,
    ResourceOptionsDict,
    options_from,
    spelled_out,
)


def described(options: type) -> dict[str, str]:
    """The docstring below each option of a class."""
    [definition] = ast.parse(inspect.getsource(options)).body
    assert isinstance(definition, ast.ClassDef)
    found, option = {}, ""
    for statement in definition.body:
        if isinstance(statement, ast.AnnAssign):
            option = ast.unparse(statement.target)
        elif isinstance(statement, ast.Expr) and option:
            found[option] = ast.unparse(statement)
    return found


def test_options_by_name_are_the_options() -> None:
    """What type checkers and editors see of a call is the dataclass: names, types, docstrings."""
    assert list(ResourceOptionsDict.__annotations__) == [e.name for e in fields(ResourceOptions)]
    assert get_type_hints(ResourceOptionsDict) == get_type_hints(ResourceOptions)
    assert described(ResourceOptionsDict) == described(ResourceOptions)
    assert set(described(ResourceOptions)) == set(ResourceOptionsDict.__annotations__)
    assert not ResourceOptionsDict.__required_keys__


class Weather(TypedDict, total=False):
    """Options of a function below."""

    rain: str | None
    snow: bool


def test_options_behind_two_stars_are_in_the_signature() -> None:
    """``help()`` and the Tab key in notebooks show each, and what holds if it is not given."""

    @spelled_out(Weather)
    def tell(day: str, *, hour: int = 12, **options: Unpack[Weather]) -> str:
        return f"{day} {hour} {options}"

    taken = "day: 'str', *, hour: 'int' = 12, rain: 'str | None' = None, snow: 'bool' = False"
    assert str(inspect.signature(tell)) == f"({taken}) -> 'str'"
    assert tell("today", snow=True) == "today 12 {'snow': True}"


@pytest.mark.parametrize(
    ("wrong", "meant"), [("indexer", "indexers"), ("label_selectors", "label_selector")]
)
def test_an_option_that_does_not_exist_is_named_with_the_likely_one(wrong: str, meant: str) -> None:
    """For those who run no type checker."""
    with pytest.raises(TypeError, match=rf"no option '{wrong}': .*did you mean {meant}\?"):
        options_from({wrong: "x"})


def test_namespaces_are_kept_once_and_in_order() -> None:
    """S2: repeated namespaces are one."""
    assert ResourceOptions(namespaces=["b", "a", "b"]).scopes == ("b", "a")


@pytest.mark.parametrize("everywhere", [None, "", [""]])
def test_no_namespace_is_all(everywhere: Any) -> None:
    """None and "" are all namespaces, in one stream."""
    assert ResourceOptions(namespaces=everywhere).scopes == ("",)


@pytest.mark.parametrize("wrong", [[], ["", "prod"], "Prod", "a/b", ["ok", "../x"]])
def test_namespaces_that_cannot_be_meant_are_refused(wrong: Any) -> None:
    """An empty list, all among others, and names that are none are ValueErrors."""
    with pytest.raises(ValueError, match="namespace"):
        ResourceOptions(namespaces=wrong)


@pytest.mark.parametrize("wrong", [0.5, -1, float("inf"), float("nan")])
def test_a_resync_period_is_none_or_a_second_at_least(wrong: float) -> None:
    """S5: 0 is off, 0 < x < 1 a ValueError."""
    with pytest.raises(ValueError, match="resync"):
        ResourceOptions(resync=wrong)
    assert ResourceOptions(resync=0).resync == 0
    assert ResourceOptions(resync=1).resync == 1
    with pytest.raises(ValueError, match="audit"):
        ResourceOptions(audit=wrong)
    assert ResourceOptions(audit=3600).audit == 3600


def test_another_bound_on_backlogs_conflicts() -> None:
    """It is the resource's; 0, which is no bound, is what is meant where none is given."""
    assert ResourceOptions(max_backlog=5).conflicts(ResourceOptions()) == [
        "max_backlog: now 5, before 0"
    ]
    assert ResourceOptions(max_backlog=0).conflicts(ResourceOptions()) == []


@pytest.mark.parametrize("wrong", [0, -5, 1 << 40])
def test_a_page_has_at_least_one_object(wrong: int) -> None:
    """A page size is a whole number from 1."""
    with pytest.raises(ValueError, match="page_size"):
        ResourceOptions(page_size=wrong)


def test_a_transform_is_a_function() -> None:
    """Anything that cannot be called is a TypeError at once."""
    with pytest.raises(TypeError, match="transform"):
        ResourceOptions(transform="nope")  # type: ignore[arg-type]


def test_options_stand_over_defaults() -> None:
    """What is said replaces the default, what is not said keeps it, indexers join."""
    defaults = ResourceOptions(namespaces="prod", resync=30, indexers={"a": ".a"})
    merged = ResourceOptions(resync=0, indexers={"b": ".b"}).over(defaults)
    assert (merged.scopes, merged.resync) == (("prod",), 0)
    assert merged.indexers == {"a": ".a", "b": ".b"}


def test_where_nothing_is_given_the_defaults_are_what_counts() -> None:
    """They are the very same, so that a thousand informers have one set of options."""
    defaults = ResourceOptions(namespaces="prod", indexers={"a": ".a"})

    assert options_from({}).over(defaults) is defaults
    assert defaults.settled() is defaults.settled()


def test_all_namespaces_can_be_said_over_one() -> None:
    """The empty name is said, None is not: one resource can be watched everywhere."""
    assert ResourceOptions(namespaces="").over(ResourceOptions(namespaces="prod")).scopes == ("",)


def test_conflicts_name_both_sides() -> None:
    """What is asked otherwise than before is listed; what is not said conflicts with nothing."""
    used = ResourceOptions(label_selector="a=b", resync=30)
    assert ResourceOptions(label_selector="a=c").conflicts(used) == [
        "label_selector: now 'a=c', before 'a=b'"
    ]
    assert ResourceOptions(resync=30, indexers={"x": ".x"}).conflicts(used) == []


def test_what_was_not_said_is_what_is_meant_by_it() -> None:
    """Said or not said, the meaning is the same; namespaces may come in any order."""
    everything = ResourceOptions(
        namespaces="",
        label_selector="",
        field_selector="",
        resync=0,
        metadata_only=False,
        page_size=500,
        watch_list=True,
        compress=True,
        audit=0,
        max_backlog=0,
        history=0,
    )
    assert ResourceOptions().settled() == everything
    assert everything.conflicts(ResourceOptions()) == []
    several = ResourceOptions(namespaces=["prod", "dev"])
    assert ResourceOptions(namespaces=["dev", "prod"]).conflicts(several) == []
    assert len(ResourceOptions(namespaces="dev").conflicts(several)) == 1


def test_list_options_have_three_attributes() -> None:
    """A tweak that sets anything else is told what it may set."""
    options = ListOptions()
    options.label_selector, options.limit = "a=b", 10
    assert repr(options) == "ListOptions(field_selector='', label_selector='a=b', limit=10)"
    with pytest.raises(AttributeError, match="only label_selector, field_selector and limit"):
        options.resource_version = "5"


def test_drop_says_its_name() -> None:
    """The value that a transform returns is readable in a message."""
    assert repr(DROP) == "dyninformer.DROP"
