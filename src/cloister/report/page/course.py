"""How it ran, how sure its numbers are, and how to do it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloister.report.layout import format_bytes, format_quantity, format_seconds
from cloister.report.page.html import Html, join, tag
from cloister.report.page.tables import make_row, make_table
from cloister.report.page.view import View
from cloister.report.result import PartyTraffic
from cloister.report.text import explain_noise

_PARTIES_MOST = 40


def show_banner(view: View) -> Html:
    """Return the head: what was asked, who took part, and whether it was simulated."""
    result = view.result
    names = result.party_names
    parties = ", ".join(names[:_PARTIES_MOST]) + (" and more" if len(names) > _PARTIES_MOST else "")
    holders = format_quantity(len(names), "organisation")
    if result.ran == "simulated":
        ran = tag(
            "p",
            tag("strong", "Simulated on one machine: "),
            "whoever ran it could read every table. What follows is about the messages that the parties would "
            "exchange.",
            class_="ran simulated",
            role="note",
        )
    else:
        ran = tag("p", f"Ran between {holders}: {parties}.", class_="ran")
    protocol = f"{result.protocol}, {result.variant}" if result.variant else result.protocol
    made = result.created[:16].replace("T", " ") + result.created[19:]
    asked = f"{format_quantity(result.k, 'cluster')} over the records of {holders}: {parties}"
    return tag(
        "header",
        tag("h1", result.name),
        tag("p", asked, class_="asked"),
        tag("p", f"{made} · protocol {protocol} · Cloister {result.cloister_version}", class_="quiet"),
        ran,
    )


def show_certainty(view: View, forecast: str | None) -> Html:
    """Return where ± comes from, and what the plan forecast."""
    result = view.result
    said = explain_noise(result) or "Sizes and centres carry no noise that is known."
    if result.card is not None:
        said += " A private report holds no exact loss: that is a statistic of all records."
    lines: list[Html | None] = [tag("p", said), tag("p", forecast) if forecast else None]
    if result.evaluation is not None and result.card is None:
        ratio = result.evaluation.ratio
        times = "" if ratio is None else f", {ratio:.4g} times that of one joint table"
        lines.append(tag("p", f"Loss: {result.evaluation.loss:.6g}{times}. Computed by the simulator; no party could."))
    lines += [tag("p", note) for note in result.notes]
    return tag("section", tag("h2", "How sure"), lines, id="sure")


def show_course(view: View) -> Html:
    """Return rounds, bytes and messages, party by party."""
    result = view.result
    shown = result.parties[:_PARTIES_MOST]
    most = max([party.bytes_sent + party.bytes_received for party in shown], default=0) or 1
    whose = "in total" if result.between is None else "of this party's"
    total = format_quantity(result.messages_total, "message")
    lines = [f"{format_quantity(result.rounds, 'round')}; {format_bytes(result.bytes_total)} in {total} {whose}."]
    if result.network is not None:
        took = format_seconds(result.network.simulated_s)
        lines.append(f"On the network {result.network.model} the messages would take {took} (simulated).")
    if result.between is not None and result.between.left:
        lines.append(f"Left before the end: {', '.join(result.between.left)}.")
    if len(shown) < len(result.parties):
        lines.append(f"{len(result.parties) - len(shown):,} more parties are in result.json.")
    heads = ("party", "sent", "received", "messages", "rounds missed", "bytes")
    return tag(
        "section",
        tag("h2", "How it ran"),
        make_table("What each party sent and received", heads, [_show_party(party, most) for party in shown]),
        [tag("p", line) for line in lines],
        id="course",
    )


def _show_party(party: PartyTraffic, most: int) -> Html:
    share = 100 * (party.bytes_sent + party.bytes_received) / most
    bar = tag("span", tag("span", style=f"width:{share:.1f}%"), class_="part", aria_hidden="true")
    counts = (party.messages_sent + party.messages_received, party.rounds_missed)
    shown = [format_bytes(party.bytes_sent), format_bytes(party.bytes_received), *(f"{count:,}" for count in counts)]
    return make_row(party.name, [*(tag("td", text) for text in shown), tag("td", bar)])


def show_audit(audit: Mapping[str, Any] | None) -> Html | None:
    """Return what an audit found, and what it could have found."""
    if audit is None:
        return None
    claim, caught = audit["claim"], audit["caught_below"]
    verdict = "refutes the claim" if audit["violates"] else "does not refute the claim; that is no proof"
    power = "Its power: none. So few runs refute nothing at this claim."
    if caught is not None:
        power = (
            f"Its power: it would have caught noise below 1/{caught:.2f} of what it should be, nine times in ten "
            "(computed, for Gaussian noise and the best event)."
        )
    least, claimed = f"{audit['epsilon_lower']:.4g}", f"{claim['epsilon']:.4g}"
    found = f"epsilon at delta {claim['delta']:g} is at least {least}; claimed: {claimed}."
    return tag(
        "section",
        tag("h2", "Audit"),
        tag(
            "p",
            f"An audit of this job on made-up records {verdict}: {found}",
            class_="bad" if audit["violates"] else None,
        ),
        tag("p", power),
        id="audit",
    )


def show_again(job: str | None, commands: tuple[str, ...]) -> Html:
    """Return the public part of the job, and the commands that did it."""
    shown = [_show_copyable(f"command {i}", command) for i, command in enumerate(commands, start=1)]
    whole = None
    if job:
        whole = tag("details", tag("summary", "The job: what all parties agreed on"), _show_copyable("the job", job))
    return tag("section", tag("h2", "Again"), shown, whole, id="again")


def _show_copyable(name: str, text: str) -> Html:
    button = tag("button", "Copy", type="button", class_="copy scripted", aria_label=f"Copy {name}")
    return tag("div", tag("pre", join(text), tabindex="0"), button, class_="copyable")
