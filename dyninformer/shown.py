"""What a notebook and a terminal show of an object: the seam between the rooms and `display`.

Everything that a user gets in hands can be shown as a table, by ``display/``, which stands above
the rooms that make these things. So they only say that they can be shown, and the display is looked
up by its name when somebody wants to see something: who never looks does not even import it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeAlias

Bundle: TypeAlias = dict[str, Any]

_DISPLAY = "dyninformer.display.notebook"


class Shown:
    """It is shown as a page: as HTML in a notebook, by rich and as text in a terminal.

    Not for import.
    """

    __slots__ = ()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Bundle:
        """What IPython asks for: HTML and text. It takes what it wants of the two."""
        del include, exclude
        bundle: Bundle = import_module(_DISPLAY).bundle(self)
        return bundle

    def shown(self) -> object:
        """What is shown in its place: itself. Not for import."""
        return self

    def __rich__(self) -> Any:
        """What rich prints."""
        return import_module(_DISPLAY).renderable(self)


class ShownCollection(Shown):
    """It is shown, and a dict or a list as well: named before these among the bases.

    IPython has text of its own for dicts and lists, which comes before that of the bundle, but
    behind this. Not for import.
    """

    __slots__ = ()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython asks for as text: the page, unless it is within something else."""
        outermost = len(printer.stack) == 1 and not cycle
        printer.text(self._repr_mimebundle_()["text/plain"] if outermost else repr(self))
