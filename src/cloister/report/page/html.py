"""HTML and SVG from nested calls. Whatever is not made here is escaped, so no name of a column or party is markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_VOID = frozenset({"br", "input", "link", "meta"})
Attribute = str | float | bool | None


class Html(str):
    """Markup that is safe to show as it is."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        return str(self)


Child = str | Iterable[str | None] | None


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """Return one element.

    Parameters
    ----------
    name
        Of the element.
    *children
        Text, which is escaped, elements, or iterables of both; None is nothing.
    **attributes
        Underscores stand for dashes, and one at the end is dropped: ``class_``, ``aria_label``. None and False leave an
        attribute out.
    """
    shown = "".join(_show_attribute(key, value) for key, value in attributes.items())
    opened = f"<{name}{shown}>"
    return Html(opened if name in _VOID else f"{opened}{join(*children)}</{name}>")


def join(*children: Child) -> Html:
    """Return elements and text one after another."""
    return Html("".join(_flatten(children)))


def _flatten(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if isinstance(child, Html):
            yield child
        elif isinstance(child, str):
            yield escape(child)
        elif child is not None:
            yield from _flatten(child)


def _show_attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-").replace("viewbox", "viewBox")
    shown = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f" {name}" if value is True else f' {name}="{escape(shown)}"'
