"""Values of options taken as they come, where nothing has to be made of them.

typer makes a validator of pydantic's for each option of a command, given or not, and most options
are texts. With typer 0.29 and pydantic 2.14, ``get cert shop`` takes 153 ms of CPU so, and 101 ms
with what is here: a third is pydantic's import. Whether it still works, and whether commands get
what they would get from typer, tests/cli/test_plain_values.py says of each new typer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

_TEXTS: Final = (str, str | None)
_LISTS: Final = (list[str], list[str] | None)


def take_as_they_come(parameters: Iterable[Any]) -> None:
    """Have typer ask for a validator only for a value that is neither a text nor the default.

    What is replaced is typer's own, and no promise of it: where it is not found, typer goes on as
    it does.
    """
    for each in parameters:
        if getattr(each, "_runtime_param", each) is None and hasattr(each, "type_descriptor"):
            each._runtime_param = _AsItComes()  # noqa: SLF001 - see above


class _AsItComes:
    """In the place of a validator, until one is needed."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value that the command gets."""
        described = param.type_descriptor
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        parser = getattr(described.parameter_info, "parser", None)
        if parser is None:
            if type(value) is str and described.annotation in _TEXTS:
                return value
            if (
                several
                and isinstance(value, list | tuple)
                and described.annotation in _LISTS
                and all(type(each) is str for each in value)
            ):
                return list(value)
        if type(value) in (int, float) and value is param.default:
            return value if parser is None else parser(value)  # typer parses defaults, too
        param._runtime_param = None  # noqa: SLF001 - typer makes its own now
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)
