"""The report as text: centres, what privacy cost, who learned what, what breaks it, and the traffic.

Printed with rich: coloured on a terminal, plain text of at most 100 columns everywhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

from cloister.job.options import Facts, known_options
from cloister.report.card_text import print_card
from cloister.report.centres import find_shares, format_cells, format_share
from cloister.report.layout import (
    choose_noun,
    format_bytes,
    format_noisy_count,
    format_quantity,
    format_seconds,
    format_uncertain,
    is_lost,
    make_table,
    print_heading,
    print_line,
    print_table,
)
from cloister.report.result import Between, KChoice, Learned, Result
from cloister.report.sizes import Sizes

_MOST_ROWS, _MOST_TRIED = 40, 20
_MOST_PARTIES = 20
_WORTH_ANOTHER_START = 1.1
_INDENT, _GAP = 2, 3  # blanks before a table, and between its columns
_LONGEST_HEADING = 24
_MOST_NAMED = 10
_LOST = "lost in noise"


def print_report(result: Result, console: Console, *, folder: Path | None = None) -> None:
    """Print a result for people.

    Parameters
    ----------
    result
        What a run returned.
    console
        From ``make_console``.
    folder
        Where it was written, named at the end.
    """
    names = result.party_names
    parties = ", ".join(names[:_MOST_PARTIES])
    if len(names) > _MOST_PARTIES:
        parties += f" and {len(names) - _MOST_PARTIES:,} more"
    clusters, alone = format_quantity(result.k, "cluster"), result.ran == "by its owner"
    holders = "one table" if alone else format_quantity(len(names), "party", "parties")
    print_heading(console, f"{result.name}: {clusters} over the records of {holders} ({result.ran})")
    protocol = f"{result.protocol}, {result.variant}" if result.variant else result.protocol
    print_line(console, f"{parties}; protocol {protocol}; {format_quantity(result.rounds, 'round')}")
    if result.between is not None:
        print_line(console, _describe_run(result.between))
    _print_centres(result, console)
    _print_curve(result, console)
    _print_loss(result, console)
    if result.card is not None:
        on_grid = _find_facts(result).noise_on_grid  # otherwise rounds have scales of their own
        print_card(result.card, console, ran=result.ran, unit_step=2.0**-result.fractional_bits if on_grid else None)
    _print_leakage(result, console)
    if not alone:
        _print_traffic(result, console)
    if result.notes:
        print_heading(console, "Notes")
        for note in result.notes:
            print_line(console, f"- {note}")
    if folder is not None and isinstance(console, Console):
        print_heading(console, "Written")
        for path in sorted(folder.iterdir()):
            console.print(Text(f"  {path}"), soft_wrap=True)


def _describe_run(between: Between) -> str:
    """Say over what the parties talked, with which versions, and who left."""
    versions = {party.cloister_version for party in between.parties}
    mixed = ", ".join(f"{party.name} {party.cloister_version}" for party in between.parties[:_MOST_PARTIES])
    said = f"run {between.run[:8]} over {between.transport}; Cloister {versions.pop() if len(versions) == 1 else mixed}"
    return said + (f"; left before the end: {', '.join(between.left)}" if between.left else "")


def _find_facts(result: Result) -> Facts:
    """Return what holds for every run of the result's protocol."""
    options = known_options().get(result.protocol)
    return Facts() if options is None else options.facts


def _print_centres(result: Result, console: Console) -> None:
    """Print the centres; the shorter side goes across, in several tables if it is too wide."""
    names = [column.name for column in result.columns]
    clusters = [f"cluster {j}" for j in range(result.k)]
    cells = format_cells(result)
    if result.sizes is not None:
        names.insert(0, result.sizes.unit)
        for row, size in zip(cells, format_sizes(result.sizes), strict=True):
            row.insert(0, size)
    rows, across, corner = clusters, names, ""
    if len(names) > 7 and result.k < len(names):
        rows, across, corner = names, clusters, "column"
        cells = [list(column) for column in zip(*cells, strict=True)]
    print_heading(console, "Centres, in original units")
    _print_cells(console, corner, rows, across, cells)
    _print_shares(result, console)
    for line in (explain_noise(result), name_mostly_noise(result)):
        if line:
            print_line(console, line)


def _print_cells(
    console: Console, corner: str, rows: Sequence[str], across: Sequence[str], cells: Sequence[Sequence[str]]
) -> None:
    """Print rows of cells, in several tables if they are too wide."""
    shown = min(len(rows), _MOST_ROWS)
    widths = [max(len(cells[i][j]) for i in range(shown)) for j in range(len(across))]
    room = console.width - _INDENT - max(len(_shorten(row)) for row in [corner, *rows[:shown]])
    for chosen in _fit_across(across, widths, room):
        table = make_table(corner, *(_shorten(across[j]) for j in chosen))
        for i in range(shown):
            table.add_row(Text(_shorten(rows[i])), *(Text(cells[i][j]) for j in chosen))
        print_table(console, table)
    if shown < len(rows):
        print_line(console, f"and {format_quantity(len(rows) - shown, 'more row')}: see centres.csv")


def _print_shares(result: Result, console: Console) -> None:
    """Print the shares of all levels of each category; of two levels, one share says it all."""
    for own in find_shares(result).values():
        if len(own.levels) > 2:
            print_heading(console, f"Shares of the levels of {_shorten(own.column)}")
            cells = [[format_share(own, j, level) for j in range(result.k)] for level in range(len(own.levels))]
            _print_cells(console, "level", own.levels, [f"cluster {j}" for j in range(result.k)], cells)


def format_sizes(sizes: Sizes) -> list[str]:
    """Format each cluster's size, in records or in per cent of them."""
    if sizes.unit != "share":
        most = sizes.total + 2 * sizes.total_noise
        return [format_noisy_count(*size, most) for size in zip(sizes.clusters, sizes.noise, strict=True)]
    return [_format_share(*share) for share in zip(sizes.clusters, sizes.noise, strict=True)]


def _format_share(share: float, noise: float) -> str:
    """Format a part of all records in per cent, or what it is probably less than."""
    if not is_lost(share, noise):
        return f"{format_uncertain(100 * share, 100 * noise)} %"
    most = math.floor(100 * (share + 2 * noise)) + 1
    return f"less than {most} %" if most < 100 else _LOST


def explain_noise(result: Result) -> str:
    """Explain what ± is of sizes and centres, and what sizes add up to."""
    said, sizes = [], result.sizes
    noisy = sizes is not None and any(sizes.noise)
    if noisy or result.centre_noise is not None:
        said.append(
            "± is one standard deviation of the noise, to first order; the sampling of the records and the algorithm's "
            "own error come on top."
        )
    if sizes is not None:
        said += _explain_sizes(sizes)
    return " ".join(said)


def _explain_sizes(sizes: Sizes) -> Iterator[str]:
    """Explain sizes that noise hides, and say what all add up to."""
    cells = format_sizes(sizes)
    marks = []
    if any(cell.startswith(("fewer", "less")) for cell in cells):
        bound = "Less than" if sizes.unit == "share" else "Fewer than"
        marks.append(f'"{bound}" marks a size lost in the noise: the bound is two deviations above what was seen.')
    if _LOST in cells:
        marks.append(f'"{_LOST.capitalize()}" marks a size that noise hides altogether.')
    if marks:
        yield from marks
        yield "Such a cluster may not be there at all, and the ± of its centre may be too small."
    if sizes.unit == "share":
        yield "How many records there are is lost in the noise."
        return
    total = format_noisy_count(sizes.total, sizes.total_noise)
    rounded = ", but for rounding" if any(sizes.noise) and not is_lost(sizes.total, sizes.total_noise) else ""
    yield f"The sizes add up to {total} {choose_noun(sizes.total, sizes.unit[:-1])}{rounded}."


def name_mostly_noise(result: Result) -> str:
    """Name the centres that are mostly noise, and the columns in which they are; empty if none is."""
    lost = result.mostly_noise
    if not lost.any():
        return ""
    said = "MOSTLY NOISE, with ± of a tenth of the column's range or more: "
    if lost.all():
        return said + "every centre, in every column."
    rows = np.flatnonzero(lost.any(axis=1)).tolist()
    named = []
    for j in rows[:_MOST_NAMED]:
        columns = [_shorten(result.coordinates[i].name) for i in np.flatnonzero(lost[j])[:_MOST_NAMED]]
        more = int(lost[j].sum()) - len(columns)
        listed = ", ".join(columns) + (f" and {format_quantity(more, 'more column')}" if more else "")
        named.append(f"cluster {j} in " + ("every column" if lost[j].all() else listed))
    more = len(rows) - len(named)
    return said + "; ".join(named) + (f"; and {format_quantity(more, 'more cluster')}" if more else "") + "."


def _shorten(name: str) -> str:
    """Shorten a long name to fit the head of a column."""
    return name if len(name) <= _LONGEST_HEADING else name[: _LONGEST_HEADING - 3] + "..."


def _fit_across(names: Sequence[str], widths: Sequence[int], room: int) -> Iterator[range]:
    """Split the first 40 columns into groups that each fit the room beside the rows' names."""
    start, used = 0, 0
    for i, name in enumerate(names[:_MOST_ROWS]):
        needed = max(len(_shorten(name)), widths[i]) + _GAP
        if i > start and used + needed > room:
            yield range(start, i)
            start, used = i, 0
        used += needed
    yield range(start, min(len(names), _MOST_ROWS))


def _print_curve(result: Result, console: Console) -> None:
    """Print each k that was tried on the released synopsis; nothing if k was given."""
    if not result.curve:
        return
    tried = sorted(result.curve, key=lambda choice: choice.k)
    print_heading(console, f"Choice of k: {result.k}, of {tried[0].k} to {tried[-1].k}")
    shown = _choose_tried(tried, result.k)
    table = make_table("k", "loss", "score", "")
    for choice in shown:
        mark = "chosen" if choice.k == result.k else ""
        table.add_row(f"{choice.k}", f"{choice.loss:.4g}", f"{choice.score:.4g}", mark)
    print_table(console, table)
    if len(shown) < len(tried):
        print_line(console, f"and {len(tried) - len(shown)} others: see result.json")
    print_line(
        console,
        "Loss and score are from the noisy histogram, which was released anyway, so the choice cost no privacy. "
        "The largest score wins.",
    )


def _choose_tried(tried: list[KChoice], k: int) -> list[KChoice]:
    """Return at most 20 choices in order of k: the chosen one and those nearest to it."""
    nearest = sorted(tried, key=lambda choice: (abs(choice.k - k), choice.k))[:_MOST_TRIED]
    return sorted(nearest, key=lambda choice: choice.k)


def _print_loss(result: Result, console: Console) -> None:
    """Print the loss next to that of k-means without privacy."""
    evaluation = result.evaluation
    if evaluation is None:
        return
    scaled = "to [-1, 1]" if result.scale is None else "so that 6 spreads are 1"
    print_heading(console, f"Loss: mean squared distance of a record to its centre, columns scaled {scaled}")
    table = make_table("", "loss", "ratio")
    ratio = "-" if evaluation.ratio is None else f"{evaluation.ratio:.4f}"
    table.add_row("this run", f"{evaluation.loss:.6g}", ratio)
    table.add_row("one joint table, best of 10 starts", f"{evaluation.reference_loss:.6g}", "1")
    print_table(console, table)
    if evaluation.empty_clusters:
        are = choose_noun(evaluation.empty_clusters, "is", "are")
        clusters = choose_noun(evaluation.empty_clusters, "an empty cluster", "empty clusters")
        print_line(
            console, f"{evaluation.empty_clusters:,} of {result.k:,} centres {are} nearest to no record: {clusters}."
        )
    if result.card is None and evaluation.ratio is not None and evaluation.ratio > _WORTH_ANOTHER_START:
        print_line(console, _find_facts(result).remedy)
    print_line(
        console,
        (
            "Computed by the table's owner."
            if result.ran == "by its owner"
            else "Computed by the simulator, which holds every record; no party could."
        )
        + ("" if result.card is None else " It is exact, so it is not private, and not written to the result."),
    )


def _print_leakage(result: Result, console: Console) -> None:
    """Print who learned what, role by role, and what breaks it."""
    print_heading(console, "Who learned what")
    table = make_table("who", "learns", "what", left=3)
    previous = ""
    for row in result.leakage:
        if previous and row.role != previous:
            table.add_row("", "", "")
        table.add_row(Text(row.role if row.role != previous else ""), Text(row.how), Text(_describe(row)))
        previous = row.role
    print_table(console, table)
    if result.card is None:  # a card has already said it
        print_line(console, f"{result.withstands} What breaks it: {result.breaks_if}".lstrip())


def _describe(row: Learned) -> str:
    """Return what was learned, one item per line, with the note."""
    what = row.what.replace("; ", "\n")
    return f"{what} ({row.note})" if row.note else what


def _print_traffic(result: Result, console: Console) -> None:
    """Print bytes, messages and missed rounds per party, the coordinator's total, and the simulated time."""
    print_heading(console, "Traffic")
    table = make_table("party", "sent", "received", "messages out", "messages in", "rounds missed")
    for party in result.parties[:_MOST_PARTIES]:
        table.add_row(
            Text(party.name),
            format_bytes(party.bytes_sent),
            format_bytes(party.bytes_received),
            f"{party.messages_sent:,}",
            f"{party.messages_received:,}",
            f"{party.rounds_missed:,}",
        )
    print_table(console, table)
    if len(result.parties) > _MOST_PARTIES:
        more = format_quantity(len(result.parties) - _MOST_PARTIES, "more party", "more parties")
        print_line(console, f"and {more}: see result.json")
    masks = "no masks" if result.ring_bits is None else f"masks over the ring of {result.ring_bits}-bit integers"
    hidden = _find_facts(result).hides_values or masks
    whose = "in total" if result.between is None else "of this party's"
    print_line(
        console,
        f"{format_bytes(result.bytes_total)} in {format_quantity(result.messages_total, 'message')} {whose}; "
        f"{format_quantity(result.fractional_bits, 'fractional bit')}, {hidden}.",
    )
    if result.network is not None:
        took = format_seconds(result.network.simulated_s)
        print_line(console, f"On the network {result.network.model} the messages would take {took} (simulated).")
