"""What is promised, what would break it, what it cost, and who learned what."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from cloister.privacy.card import CardRelease, PrivacyCard
from cloister.privacy.costs import epsilon_of_rho, rho_of_epsilon
from cloister.privacy.units import Unit, write_bound
from cloister.report.layout import format_number, format_quantity
from cloister.report.page.html import Html, join, tag
from cloister.report.page.tables import make_row, make_table
from cloister.report.page.view import View

if TYPE_CHECKING:
    from cloister.privacy.ledger import Statement

_LITTLE = 5.0
"""Above this epsilon a page says that it protects little."""
_ROWS_MOST = 20
_PARTIES_MOST = 30
_CELLS = {"nothing of": "nothing", "not": "nothing", "with DP noise": "with noise", "only its own": "its own"}


def show_promise(view: View) -> Html:
    """Return the promise, with what breaks it beside it and never after it in smaller print."""
    card = view.result.card
    if card is None:
        words = "No differential privacy: the centres are exact, and publishing them can reveal records."
        return _lay_out(
            [tag("p", words, class_="words bad"), tag("p", view.result.withstands) if view.result.withstands else None],
            [tag("p", view.result.breaks_if)],
        )
    promised: list[Html | None] = [tag("p", card.plain_words, class_="words" if card.private else "words bad")]
    if card.private:
        promised += [_show_odds(card), tag("p", card.protects_against)]
    promised += [tag("p", f"Noise: {card.who_adds_noise}", class_="quiet")]
    broken = [tag("p", card.breaks_if), tag("p", f"Who could remove the noise: {card.who_could_subtract}")]
    warnings = [tag("p", tag("strong", "Warning: "), warning, class_="warning") for warning in card.warnings]
    rest = [tag("h3", "Not promised"), tag("ul", [tag("li", line) for line in card.not_promised], class_="unpromised")]
    return _lay_out(promised, broken, *warnings, *(rest if card.not_promised else ()))


def _lay_out(promised: Sequence[Html | None], broken: Sequence[Html | None], *rest: Html | None) -> Html:
    return tag(
        "section",
        tag("h2", "What is promised"),
        tag(
            "div",
            tag("div", tag("h3", "The promise"), promised),
            tag("div", tag("h3", "What breaks it"), broken),
            class_="beside",
        ),
        rest,
        id="promise",
    )


def _show_odds(card: PrivacyCard) -> Html:
    """Return how far a belief of one half can move: e^epsilon / (1 + e^epsilon), rounded up."""
    most = math.ceil(100 / (1 + math.exp(-card.epsilon)) - 1e-9)
    whose = {Unit.CLIENT.value: "a party's records are", Unit.PERSON.value: "someone's records are"}
    what = whose.get(card.unit, "someone's record is")
    said = f"A belief of 50 % that {what} in it can grow to at most {most} %."
    if card.epsilon > _LITTLE:
        said += f" Epsilon {format_number(card.epsilon, 3)} protects little."
    return tag(
        "div",
        tag("p", said),
        tag(
            "div",
            tag("div", class_="grown", style=f"width:{most}%"),
            tag("div", class_="half"),
            class_="odds",
            aria_hidden="true",
        ),
    )


def show_budget(view: View, ledgers: Mapping[str, Statement] | None) -> Html | None:
    """Return what the run cost, release by release, and what ledgers held before and hold now."""
    card = view.result.card
    if card is None:
        return None
    spent = "Claimed" if card.flaw else "Spent"
    allowed = f"{spent}: epsilon {format_number(card.epsilon)} of {format_number(card.budget_epsilon)}"
    allowed += f" allowed, at delta {card.budget_delta:.3g}, for {card.neighbours}."
    return tag(
        "section",
        tag("h2", "The budget"),
        tag("p", f"{allowed} {_say_twice(card)}", class_="lead"),
        tag("p", f"Composition: {card.how_composed}.", class_="quiet"),
        _show_releases(card.releases),
        _show_ledgers(ledgers),
        id="budget",
    )


def _say_twice(card: PrivacyCard) -> str:
    """Say what the same run once more would make it: twice the rho at the same delta, or twice the pure epsilon."""
    if card.flaw:
        return ""
    twice = 2 * card.epsilon
    if 0 < card.delta < 1:
        twice = min(twice, epsilon_of_rho(2 * rho_of_epsilon(card.epsilon, card.delta), card.delta))
    return f"Running again costs again: twice is about {format_number(twice, 3)}."


def _show_releases(releases: Sequence[CardRelease]) -> Html:
    """Return a row for each release and its part of the cost; like ones that follow each other share a row."""
    pure = all(one.pure_epsilon is not None for one in releases)
    groups = [
        list(alike)
        for _, alike in groupby(releases, key=lambda one: (one.noise, one.scale, one.sensitivity_l2, one.entries))
    ]
    costs = [math.fsum((one.pure_epsilon or 0.0) if pure else one.rho for one in group) for group in groups]
    whole = math.fsum(costs) or 1.0
    rows = [_show_release(group, cost / whole) for group, cost in zip(groups[:_ROWS_MOST], costs, strict=False)]
    unit = "epsilon" if pure else "rho, the unit that adds up"
    more = len(groups) - len(rows)
    heads = ("release", "noise", "noise / sensitivity", "part")
    return join(
        make_table(f"What was released, and its part of the cost (in {unit})", heads, rows, kind="releases"),
        tag("p", f"and {format_quantity(more, 'more kind')} of release: see result.json") if more > 0 else None,
    )


def _show_release(group: list[CardRelease], part: float) -> Html:
    first = group[0]
    name = first.name if len(group) == 1 else f"{first.name}, and {len(group) - 1:,} more like it"
    share = 100 * part
    shown = f"{share:.0f} %" if share >= 1 else "under 1 %"
    ratio = format_number(first.scale / first.sensitivity_l2, 4) if first.sensitivity_l2 else "none needed"
    bar = tag("span", tag("span", style=f"width:{share:.1f}%"), class_="part", aria_hidden="true")
    return make_row(name, [tag("td", first.noise), tag("td", ratio), tag("td", bar, f" {shown}")])


def _show_ledgers(ledgers: Mapping[str, Statement] | None) -> Html:
    if not ledgers:
        words = "No ledger is shown here: what all jobs together have spent is for each party's own eyes."
        return tag("p", words, class_="quiet")
    rows = [_show_statement(party, state) for party, state in list(ledgers.items())[:_PARTIES_MOST]]
    caption = "Ledgers: epsilon of all jobs together. For each party's own eyes; not in the result"
    return make_table(caption, ("party", "data set", "before", "now", "if run again", "cap"), rows)


def _show_statement(party: str, state: Statement) -> Html:
    epsilons = (state.before, state.after, state.again)
    cap = "no cap" if state.cap is None else format_number(state.cap.epsilon, 4)
    shown = [state.dataset, *(write_bound(epsilon, 4) for epsilon in epsilons), cap]
    return make_row(party, [tag("td", text) for text in shown])


def show_learned(view: View) -> Html:
    """Return who learned what: things as rows, roles as columns."""
    roles: list[str] = []
    things: dict[str, dict[str, str]] = {}
    public = []
    for row in view.result.leakage:
        if row.role == "everyone":
            public.append(f"{row.what} ({row.note})" if row.note else row.what)
            continue
        if row.role not in roles:
            roles.append(row.role)
        for thing in row.what.split("; "):
            things.setdefault(thing, {})[row.role] = row.how
    body = [make_row(thing, [_show_cell(cells.get(role)) for role in roles]) for thing, cells in things.items()]
    return tag(
        "section",
        tag("h2", "Who learned what"),
        make_table("What each role learned", ("what", *roles), body, kind="learned"),
        [tag("p", f"Everyone knows: {line}.") for line in public],
        id="learned",
    )


def _show_cell(how: str | None) -> Html:
    if how is None:
        return tag("td", "\N{EN DASH}", class_="none")
    shown = _CELLS.get(how, how)
    kinds = {"nothing": "nothing", "its own": "own", "exactly": "exactly"}
    return tag("td", shown, class_=kinds.get(shown, "noisy"))
