"""Expressions to functions that answer them from an object's bytes, by one partial decode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec

from dyninformer.jsonpath.document import decoded
from dyninformer.jsonpath.extraction import Extract, extraction, plain_way
from dyninformer.jsonpath.layout import lay_out, struct_of
from dyninformer.jsonpath.shape import Expression

Values: TypeAlias = list[Any]
Decode: TypeAlias = Callable[[Any], Any]
Find: TypeAlias = Callable[[Any], Values]

UNFIT = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What a partial decode raises for an object that has to be read as a whole."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A decoder of what some expressions need, and for each how to find its values in that.

    Where the bytes do not fit the decoder raises, and the expressions have to be asked on the
    whole object, which gives the same answers.
    """

    decode: Decode
    extracts: tuple[Extract, ...]
    ways: tuple[str | None, ...]
    """For each expression of nothing but keys, the attributes that lead to its value."""


def compiled(expressions: Sequence[Expression]) -> Compiled:
    """The expressions laid over each other, for one decode."""
    layout = lay_out([expression.shape for expression in expressions])
    laid = list(zip(expressions, layout.covered, strict=True))
    return Compiled(
        decoded
        if layout.top.whole or not laid
        else msgspec.json.Decoder(struct_of(layout.top)).decode,
        tuple(extraction(expression, layout.top, covered) for expression, covered in laid),
        tuple(plain_way(expression, layout.top, covered) for expression, covered in laid),
    )


def finder(expression: Expression, present: Callable[[Values], Values]) -> Find:
    """How to find one expression's values in JSON bytes, and to present them."""
    plan = compiled([expression])
    if plan.ways[0] is not None:
        return _plain_finder(expression, present, plan.decode, attrgetter(plan.ways[0]))
    decode, extract = plan.decode, plan.extracts[0]

    def find(raw: Any) -> Values:
        try:
            root = decode(raw)
        except UNFIT:
            return present(expression.find(decoded(raw)))
        return present(extract(root))

    return find


def _plain_finder(
    expression: Expression, present: Callable[[Values], Values], decode: Decode, get: Decode
) -> Find:
    """The same with fewer calls, for the paths that are asked most."""

    def find(raw: Any) -> Values:
        try:
            value = get(decode(raw))
        except AttributeError:  # a null on the way
            return []
        except UNFIT:
            return present(expression.find(decoded(raw)))
        if type(value) is str:
            return [value]
        return [] if value is msgspec.UNSET else present([value])

    return find
