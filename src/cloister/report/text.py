"""The report as text: centres, what privacy cost, who learned what, what breaks it, and the traffic.

Printed with rich: coloured on a terminal, plain text of at most 100 columns everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from cloister.job.options import Facts, known_options
from cloister.report.card_text import print_card
from cloister.report.layout import (
    choose_noun,
    format_bytes,
    format_count,
    format_noisy_count,
    format_quantity,
    format_seconds,
    format_value,
    make_table,
    print_heading,
    print_line,
    print_table,
)
from cloister.report.result import Between, KChoice, Learned, Result

_MOST_ROWS, _MOST_TRIED = 40, 20
_MOST_PARTIES = 20
_WORTH_ANOTHER_START = 1.1
_CELL_WIDTH = 12  # a value, and the blanks around it
_LONGEST_HEADING = 24


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
    clusters, holders = format_quantity(result.k, "cluster"), format_quantity(len(names), "party", "parties")
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
    _print_traffic(result, console)
    if result.notes:
        print_heading(console, "Notes")
        for note in result.notes:
            print_line(console, f"- {note}")
    if folder is not None:
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
    cells = [
        [format_value(value, column) for value, column in zip(row, result.columns, strict=True)]
        for row in result.centres.tolist()
    ]
    if result.cluster_records:
        names.insert(0, "records")
        for row, size in zip(cells, result.cluster_records, strict=True):
            row.insert(0, format_noisy_count(size, result.cluster_records_noise, result.released_records))
    rows, across, corner = clusters, names, ""
    if len(names) > 7 and result.k < len(names):
        rows, across, corner = names, clusters, "column"
        cells = [list(column) for column in zip(*cells, strict=True)]
    print_heading(console, "Centres, in original units")
    shown = min(len(rows), _MOST_ROWS)
    widths = [max(len(cells[i][j]) for i in range(shown)) for j in range(len(across))]
    for chosen in _fit_across(across, widths, console.width):
        table = make_table(corner, *(_shorten(across[j]) for j in chosen))
        for i in range(shown):
            table.add_row(Text(_shorten(rows[i])), *(cells[i][j] for j in chosen))
        print_table(console, table)
    if shown < len(rows):
        print_line(console, f"and {format_quantity(len(rows) - shown, 'more row')}: see centres.npz")
    if result.cluster_records:
        print_line(console, _explain_sizes(result))


def _explain_sizes(result: Result) -> str:
    """Explain what the noise does to the sizes of clusters."""
    said, noise = ["Sizes carry noise."], result.cluster_records_noise
    if noise is not None and any(size >= 2 * noise for size in result.cluster_records):
        said.append("± is its standard deviation.")
    if noise is not None and any(size < 2 * noise for size in result.cluster_records):
        said.append('"Fewer than" marks a size lost in the noise: the bound is two deviations above what was seen.')
    if result.released_records is not None:
        total = result.released_records
        said.append(f"About {format_count(total)} {choose_noun(total, 'record')} in total.")
    return " ".join(said)


def _shorten(name: str) -> str:
    """Shorten a long name to fit the head of a column."""
    return name if len(name) <= _LONGEST_HEADING else name[: _LONGEST_HEADING - 3] + "..."


def _fit_across(names: Sequence[str], widths: Sequence[int], width: int) -> Iterator[range]:
    """Split the first 40 columns into groups that each fit the width beside the rows' names."""
    start, used, room = 0, 0, width - _LONGEST_HEADING - 4
    for i, name in enumerate(names[:_MOST_ROWS]):
        needed = max(_CELL_WIDTH, len(_shorten(name)) + 3, widths[i] + 3)
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
    print_heading(console, "Loss: mean squared distance of a record to its centre, columns scaled to [-1, 1]")
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
        "Computed by the simulator, which holds every record; no party could."
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
