"""The whole page, and the fragments that notebooks show."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from cloister.report.page.course import show_again, show_audit, show_banner, show_certainty, show_course
from cloister.report.page.figures import show_curve, show_map, show_profiles
from cloister.report.page.groups import show_groups, show_table
from cloister.report.page.html import Html, tag
from cloister.report.page.marks import define_shapes
from cloister.report.page.promise import show_budget, show_learned, show_promise
from cloister.report.page.view import look_at
from cloister.report.result import Result

if TYPE_CHECKING:
    from cloister.privacy.ledger import Statement

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)
"""The page makes no request, and a browser that is asked to refuses."""


def make_page(
    result: Result,
    *,
    ledgers: Mapping[str, Statement] | None = None,
    forecast: str | None = None,
    audit: Mapping[str, Any] | None = None,
    job: str | None = None,
    commands: tuple[str, ...] = (),
) -> str:
    """Return a result as one HTML page.

    Parameters
    ----------
    result
        What a run returned.
    ledgers
        What the run did to the ledger of each party whose own page this is. A page with it is that party's alone.
    forecast
        What the plan of the job expected of the loss and of the smallest cluster, in words.
    audit
        An audit of the job, as ``cloister audit --json`` prints it.
    job
        The public part of the job file.
    commands
        What was run.
    """
    view = look_at(result)
    blocks = (
        show_groups(view),
        show_profiles(view),
        show_map(view),
        show_table(view),
        show_promise(view),
        show_budget(view, ledgers),
        show_learned(view),
        show_certainty(view, forecast),
        show_course(view),
        show_curve(view),
        show_audit(audit),
        show_again(job, commands) if job or commands else None,
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{result.name}: {result.k} clusters"),
        tag("style", Html(_read("page.css"))),
    )
    body = tag(
        "body",
        tag("a", "Skip to the groups", href="#groups", class_="skip"),
        define_shapes(),
        tag("main", show_banner(view), blocks),
        tag("script", Html(_read("page.js"))),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def make_fragment(result: Result) -> str:
    """Return the page's blocks for a notebook: with their style, which touches nothing else, and without a script."""
    view = look_at(result)
    blocks = (
        show_banner(view),
        show_groups(view),
        show_profiles(view),
        show_table(view),
        show_promise(view),
        show_budget(view, None),
        show_learned(view),
        show_certainty(view, None),
        show_course(view),
        show_curve(view),
    )
    style = _read("page.css").replace(":root", "&").replace("body {", "& {")
    return tag("div", tag("style", Html(f".cloister {{\n{style}}}\n")), define_shapes(), blocks, class_="cloister")


def _read(name: str) -> str:
    return files("cloister.report.page").joinpath(name).read_text(encoding="utf-8")
