"""A report as HTML: what the printed one says, as headings, paragraphs and tables, for notebooks and pages."""

from __future__ import annotations

from html import escape

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from cloister.report.result import Result
from cloister.report.text import print_report

_ANY_WIDTH = 10_000


class HtmlPage:
    """Collects a report; all text is escaped, so that no name in a job can be markup.

    Attributes
    ----------
    width
        No table is split for want of room.
    """

    width = _ANY_WIDTH

    def __init__(self) -> None:
        self._parts: list[str] = []

    def add_heading(self, text: str) -> None:
        """Begin a section."""
        level = "h4" if self._parts else "h3"
        self._parts.append(f"<{level}>{escape(text)}</{level}>")

    def add_line(self, text: str) -> None:
        """Add a paragraph."""
        self._parts.append(f"<p>{escape(text)}</p>")

    def add_table(self, table: Table) -> None:
        """Add a table."""
        columns = table.columns
        heads = "".join(_write_cell("th", column.header, column.justify) for column in columns)
        rows = []
        for cells in zip(*(column.cells for column in columns), strict=True):
            written = [_write_cell("td", cell, column.justify) for cell, column in zip(cells, columns, strict=True)]
            rows.append(f"<tr>{''.join(written)}</tr>")
        self._parts.append(f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>")

    def text(self) -> str:
        """Return it as one element."""
        return '<div class="cloister-result">' + "\n".join(self._parts) + "</div>"


def _write_cell(tag: str, cell: RenderableType, justify: str) -> str:
    plain = cell.plain if isinstance(cell, Text) else str(cell)
    return f'<{tag} style="text-align: {justify}">{escape(plain).replace(chr(10), "<br>")}</{tag}>'


def write_html(result: Result) -> str:
    """Return a result's report."""
    page = HtmlPage()
    print_report(result, page)
    return page.text()
