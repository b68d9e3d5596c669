"""The part of a printed plan that only vertical jobs have."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from cloister.planning.model import Plan, VerticalOutline
from cloister.planning.rounding import format_ratio
from cloister.report.digits import format_bytes
from cloister.report.layout import make_table, print_heading, print_line, print_table


def print_outline(plan: Plan, outline: VerticalOutline, console: Console) -> None:
    """Print who does what, under which encryption, and why."""
    rounds = f"{plan.rounds_max} rounds of Lloyd's algorithm" if plan.rounds_max > 1 else "one round"
    first = (
        "one pass for a joint histogram, then " if len(outline.passes) > plan.rounds_max else "random centres, then "
    )
    print_line(console, f"Rounds: {first}{rounds}.")
    joint = f", {outline.joint_cells:,} joint ones" if len(outline.cells) > 1 else ""
    cells = " x ".join(f"{count}" for count in outline.cells)
    print_line(
        console,
        f"Encryption: {cells} cells{joint}; ring {outline.ring_degree:,}, modulus of {outline.modulus_bits} bits (at "
        f"most what the standard allows for 128-bit security), sums of {outline.plaintext_bits} bits. Errors are "
        f"hidden by {outline.flood}.",
    )
    if outline.replacement_epsilon is not None:
        print_line(
            console,
            "All parties know which records take part. To change the values of one that is there costs epsilon = "
            f"{outline.replacement_epsilon:.3g}.",
        )
    for reason in outline.reasons:
        print_line(console, reason)


def print_exact_losses(outline: VerticalOutline, console: Console) -> None:
    """Print what deciding through cells costs, where there is no noise."""
    print_heading(console, "Loss over that of k-means on whole records, by family")
    table = make_table("family", "loss")
    for loss in outline.exact_losses:
        table.add_row(loss.family, format_ratio(loss.ratio))
    print_table(console, table)


def print_vertical_traffic(plan: Plan, outline: VerticalOutline, console: Console) -> None:
    """Print each party's link, and what the computing party must hold."""
    print_heading(console, "Traffic")
    table = make_table("party", "does", "sent", "of that columns", "received", "messages each way", left=2)
    for party in outline.parties:
        table.add_row(
            Text(party.name),
            party.does,
            format_bytes(party.carried.bytes_up),
            format_bytes(party.upload_bytes) if party.upload_bytes else "-",
            format_bytes(party.carried.bytes_down),
            f"{party.carried.messages_up:,}",
        )
    print_table(console, table)
    print_line(
        console,
        f"{format_bytes(plan.traffic.total_bytes)} in all, in {plan.traffic.steps} steps, if nobody drops out. The "
        f"computing party needs about {format_bytes(outline.memory_bytes)} of memory for ciphertexts and sums.",
    )
