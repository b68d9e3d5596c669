"""Tables that scroll on narrow screens, with the keyboard too."""

from __future__ import annotations

from collections.abc import Iterable

from cloister.report.page.html import Html, tag


def make_table(caption: str, heads: Iterable[str], rows: Iterable[Html], *, kind: str | None = None) -> Html:
    """Return a table with a caption, one row of heads, and rows that begin with a head of their own."""
    table = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", [tag("th", head, scope="col") for head in heads])),
        tag("tbody", rows),
        class_=kind,
    )
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def make_row(head: str | Html, cells: Iterable[Html], *, kind: str | None = None) -> Html:
    """Return a row; ``cells`` are elements."""
    return tag("tr", tag("th", head, scope="row"), cells, class_=kind)
