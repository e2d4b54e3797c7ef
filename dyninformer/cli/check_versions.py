"""Which versions are installed here, and whether they are those that are allowed."""

from __future__ import annotations

import operator
import platform
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from itertools import zip_longest
from typing import Final, TypeAlias

from dyninformer.cli.findings import Finding, fail, ok, warn

Numbers: TypeAlias = tuple[int, ...]
Wanted: TypeAlias = dict[str, list[str]]

_CHECK: Final = "versions"
_OWN: Final = "dyninformer"
# A wildcard as in !=0.41.* is left out: it is about a version that is long gone.
_REQUIREMENT: Final = re.compile(r"\s*([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*\(?([^;)]*)\)?\s*(?:;|$)")
_CLAUSE: Final = re.compile(r"^\s*(>=|<=|==|!=|<|>)\s*(\d+(?:\.\d+)*)\s*$")
_COMPARE: Final = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq,
    "!=": operator.ne, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


def installed_versions() -> Iterator[Finding]:
    """One line with all versions, and one more for each that is not allowed."""
    try:
        own = version(_OWN)
    except PackageNotFoundError:
        yield warn(
            _CHECK, f"{_OWN} is not installed as a package", "pip install 'dyninformer[cli]'"
        )
        return
    wanted = _requirements(_OWN)
    wanted["urllib3"] = wanted.get("urllib3", []) + _requirements("kubernetes").get("urllib3", [])
    found = {name: _installed(name) for name in wanted}
    listed = ", ".join(f"{name} {number or 'missing'}" for name, number in found.items())
    problems = [
        fail(
            _CHECK,
            f"{name} is {found[name] or 'missing'}; {_OWN} needs {name}{','.join(clauses)}",
            f"pip install --upgrade '{name}{','.join(clauses)}'",
        )
        for name, clauses in wanted.items()
        if not allows(clauses, found[name])
    ]
    yield from problems
    if not problems:
        yield ok(_CHECK, f"{_OWN} {own}, python {platform.python_version()}, {listed}")


def allows(clauses: list[str], number: str) -> bool:
    """Whether a version is one that ``>=29,!=36.0.0`` allows.

    >>> allows([">=29.0.0", "!=36.0.0"], "36.0.0"), allows([">=29.0.0", "!=36.0.0"], "37.0.2")
    (False, True)
    """
    own = _numbers(number)
    for clause in clauses:
        matched = _CLAUSE.match(clause)
        if matched and not _COMPARE[matched[1]](*_alike(own, _numbers(matched[2]))):
            return False
    return bool(own)


def _requirements(package: str) -> Wanted:
    """What a package needs in any case, by name."""
    found: Wanted = {}
    for line in requires(package) or ():
        matched = _REQUIREMENT.match(line)
        if matched and ";" not in line:
            clauses = found.setdefault(matched[1], [])
            clauses += [each for each in matched[2].split(",") if each and each not in clauses]
    return found


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _numbers(text: str) -> Numbers:
    matched = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(map(int, matched[0].split("."))) if matched else ()


def _alike(one: Numbers, other: Numbers) -> tuple[Numbers, Numbers]:
    """Of equal length: 1.2 is 1.2.0."""
    pairs = list(zip_longest(one, other, fillvalue=0))
    return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
