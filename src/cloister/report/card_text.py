"""The privacy card as text: the promise in plain words, then what it cost, then what is not promised."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.text import Text

from cloister.privacy.card import VALUES_CHANGED, CardRelease, PrivacyCard
from cloister.privacy.units import Noisy, Unit
from cloister.report.layout import (
    format_number,
    format_quantity,
    make_table,
    print_heading,
    print_line,
    print_table,
)

_MOST_ROWS = 12
_SIMULATED = (
    "Simulated: one process ran all parties and held every record. Nothing is promised against whoever ran it; what "
    "follows is about the messages that the parties would exchange."
)
_PERSONS = (
    "A person is an ID. Of the records with one ID as many count as stands below under Neighbours; a fresh key decided "
    "which. Who has records at several parties counts at each."
)
_NUMBERS_ARE = {
    Noisy.PARTLY: "The numbers are for that noise alone.",
    Noisy.UNPROVED: "The numbers are what the published text claims.",
    Noisy.SEEDED: "The numbers are what a run without a seed would cost.",
}


def print_card(card: PrivacyCard, console: Console, *, ran: str, unit_step: float | None = None) -> None:
    """Print a card.

    Parameters
    ----------
    card
        Of a result with noise.
    console
        Where to.
    ran
        How the result was made.
    unit_step
        The step of the integer grid in unit scaling, to show noise in the units of the records; None if releases
        have units of their own.
    """
    print_heading(console, "Privacy card")
    print_line(console, card.plain_words)
    if card.unit == Unit.CLIENT.value:
        print_line(
            console,
            "A client is a party: the unit is one party's whole table, not one record. Who takes part is public.",
        )
    if card.unit == Unit.PERSON.value and not card.neighbours.startswith(VALUES_CHANGED):
        print_line(console, _PERSONS)
    if ran == "simulated":
        print_line(console, _SIMULATED)
    if card.noisy in (Noisy.PRIVATE, Noisy.TOO_LITTLE):
        print_line(console, f"{card.protects_against} What breaks it: {card.breaks_if}")
    elif card.scope:
        print_line(console, f"What breaks it: {card.breaks_if}")
    print_line(console, f"Noise: {card.who_adds_noise} Who could remove it: {_start_small(card.who_could_subtract)}")
    for warning in card.warnings:
        print_line(console, f"WARNING: {warning}")
    if card.noisy in _NUMBERS_ARE:
        print_line(console, _NUMBERS_ARE[card.noisy])
    table = make_table("", "claimed" if card.flaw else "spent", "allowed")
    table.add_row("epsilon", format_number(card.epsilon), format_number(card.budget_epsilon))
    table.add_row("delta", f"{card.delta:.3g}", f"{card.budget_delta:.3g}")
    print_table(console, table)
    print_line(console, f"Neighbours: {card.neighbours}. Composition: {card.how_composed}.")
    _print_releases(card.releases, console, unit_step)
    if card.private:
        print_line(console, "Not promised: " + " ".join(card.not_promised))


def _start_small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _print_releases(releases: Sequence[CardRelease], console: Console, unit_step: float | None) -> None:
    """Print the releases; consecutive similar ones share one row."""
    pure = all(one.pure_epsilon is not None for one in releases)
    kind, cost = ("L1", "epsilon, together") if pure else ("L2", "rho, together")
    scaled = () if unit_step is None else (f"{kind} sensitivity", "scale")
    ratio = f"scale / {kind} sensitivity" if pure else "scale / sensitivity"
    table = make_table("release", "noise", *scaled, ratio, cost, left=2)
    rows = 0
    for _, alike in groupby(releases, key=lambda one: (one.noise, one.scale, one.sensitivity_l2, one.entries)):
        group = list(alike)
        rows += 1
        if rows > _MOST_ROWS:
            continue
        first = group[0]
        name = first.name if len(group) == 1 else f"{first.name}, and {len(group) - 1:,} more like it"
        sensitivity = float(first.sensitivity_l1) if pure else first.sensitivity_l2
        sizes = () if unit_step is None else (sensitivity * unit_step, first.scale * unit_step)
        table.add_row(
            Text(name),
            Text(first.noise),
            *(format_number(size, 4) for size in sizes),
            format_number(first.scale / sensitivity, 4),
            format_number(sum((one.pure_epsilon or 0.0) if pure else one.rho for one in group), 4),
        )
    print_table(console, table)
    if rows > _MOST_ROWS:
        more = format_quantity(rows - _MOST_ROWS, "more kind", "more kinds")
        print_line(console, f"and {more} of release: see result.json")
    if unit_step is not None:
        print_line(console, "Sensitivity and scale in unit scaling, where a column runs from -1 to 1.")
