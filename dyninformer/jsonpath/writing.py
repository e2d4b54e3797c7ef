"""A path's text from its steps: the inverse of parsing, for paths that people read and use.

kubectl's dialect is written wherever it can say it. It has no word for a key with a backslash or
a brace, for an empty key, nor for an element that only several fields tell apart; such a path is
jsonpath-ng's, and begins with ``$``.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeAlias

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.parser import (
    FieldNode,
    FilterNode,
    LiteralNode,
    PathNode,
    SliceNode,
    TextNode,
    parse,
)

Field: TypeAlias = tuple[str, str | int]
Where: TypeAlias = tuple[Field, ...]
"""The one element of a list whose fields have these values."""
Step: TypeAlias = str | int | Where | None
"""A key, an index, an element by its fields; None is every element."""
Steps: TypeAlias = tuple["Steps", Step] | None
"""The steps before the last, and the last; linked, so that a walk shares what is above."""

_SPECIAL: Final = re.compile(r"[^\w/-]", re.ASCII)
_BEYOND_KUBECTL: Final = re.compile(r"[\\{}\r\n]")
_PLAIN_NAME: Final = re.compile(r"(?!where(?:not)?\Z)[A-Za-z_][A-Za-z0-9_]*")
_ESCAPED_IN_TEXT: Final = re.compile(r"[^\w ./:@+~%#;|^*?-]|[^\x00-\x7f]", re.ASCII)
_INT64: Final = 1 << 63


class Way(NamedTuple):
    r"""The way from the top of an object to a place in it; `str()` is its path.

    >>> conditions = Way().to("status").to("conditions")
    >>> str(conditions.to((("type", "Ready"),)))
    '.status.conditions[?(@.type=="Ready")]'
    >>> str(Way().to("spec").to("ports").to((("port", 53), ("protocol", "UDP"))))
    '$.spec.ports[?(@.port==53 && @.protocol=="UDP")]'
    >>> print(Way().to("labels").to("a.b/c"))
    .labels.a\.b/c
    """

    text: str = ""
    """In kubectl's manner, even where it is beyond that dialect."""
    steps: Steps = None
    beyond: bool = False
    """kubectl's dialect cannot say it."""

    def to(self, step: Step) -> Way:
        """The way one step further."""
        beyond = self.beyond or not _in_kubectl(step)
        return Way(self.text + _kubectl(step), (self.steps, step), beyond)

    def __str__(self) -> str:
        if not self.beyond:
            return self.text
        texts = []
        steps = self.steps
        while steps is not None:
            steps, step = steps
            texts.append(_extended(step))
        return "$" + "".join(reversed(texts))


def one_further(path: str, step: str | int) -> str:
    r"""Return the path of a key or an index in the value that a path finds.

    >>> print(one_further(".metadata.labels", "a.b/c"))
    .metadata.labels.a\.b/c
    >>> print(one_further(".metadata.labels", ""))
    $.metadata.labels[""]
    """
    if path.startswith("$"):
        return path + _extended(step)
    way = None if _in_kubectl(step) else _way(path)
    return str(way.to(step)) if way else path + _kubectl(step)


def _way(path: str) -> Way | None:
    """Return the way that a path in kubectl's dialect was written from; None for other paths."""
    try:
        (parsed,) = parse(f"{{{path}}}")
    except (JSONPathError, ValueError):  # it is too long, or a template
        return None
    way = Way()
    for node in parsed.nodes if isinstance(parsed, PathNode) else ():
        match node:
            case FieldNode(name):
                way = way.to(name)
            case SliceNode(start=int(index), single=True):
                way = way.to(index)
            case FilterNode(
                PathNode((FieldNode(name),)),
                "==",
                PathNode((TextNode(value) | LiteralNode(int(value)),)),
            ):
                way = way.to(((name, value),))
            case _:
                return None
    return way


def can_be_compared(value: object) -> bool:
    """Whether a filter can find an element by a field of this value."""
    return type(value) is str or (type(value) is int and -_INT64 <= value < _INT64)


def _in_kubectl(step: Step) -> bool:
    if isinstance(step, str):
        return step != "" and _BEYOND_KUBECTL.search(step) is None
    if isinstance(step, tuple):
        return len(step) == 1 and _PLAIN_NAME.fullmatch(step[0][0]) is not None
    return True


def _kubectl(step: Step) -> str:
    if isinstance(step, str):
        return "." + _SPECIAL.sub(r"\\\g<0>", step)
    if isinstance(step, tuple):
        tests = (f"@{_kubectl(name)}=={_literal(value)}" for name, value in step)
        return f"[?({' && '.join(tests)})]"
    return _item(step)


def _extended(step: Step) -> str:
    if isinstance(step, str):
        return f".{step}" if _PLAIN_NAME.fullmatch(step) else f"[{_quoted(step)}]"
    if isinstance(step, tuple):
        return f"[?({' && '.join(map(_extended_field, step))})]"
    return _item(step)


def _extended_field(field: Field) -> str:
    name, value = field
    return f"@{_extended(name)}=={_quoted(value) if isinstance(value, str) else value}"


def _item(step: int | None) -> str:
    return "[*]" if step is None else f"[{step}]"


def _literal(value: str | int) -> str:
    """A number, or a text in Go's escapes, with nothing in it that ends a filter."""
    if isinstance(value, int):
        return str(value)
    return f'"{_ESCAPED_IN_TEXT.sub(_go_escape, value)}"'


def _go_escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _quoted(text: str) -> str:
    r"""As jsonpath-ng reads it: only the quote and the backslash are escaped."""
    return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))
