"""A plan as text: what would run, what it is expected to find, what it costs, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cloister.columns import Coordinate
from cloister.forecast.advice import format_noise, format_ratio
from cloister.forecast.model import Case, PartyBytes, PlacementForecast, QuorumNoise, Range
from cloister.planning.plan import Plan, name_any
from cloister.privacy.units import Noisy
from cloister.report.layout import format_bytes, format_count, make_table, print_heading, print_line, print_table

_MOST_COLUMNS = 12


def print_plan(plan: Plan, console: Console) -> None:
    """Print a plan."""
    k = f"at most {plan.k}" if plan.choose_k else f"{plan.k}"
    held = "columns" if plan.split == "columns" else "records"
    holders = "one table" if plan.parties == 1 else f"{plan.parties:,} parties"
    console.print(Text(f"{plan.name}: a plan for {k} clusters over the {held} of {holders}"))
    if plan.not_private:
        print_line(console, plan.not_private)
    print_line(console, "From the job file and made-up records only: no party's table was opened, nothing was spent.")
    _print_what_runs(plan, console)
    if plan.cases:
        _print_losses(plan, console)
        _print_families(plan, console)
    if plan.cases or plan.round_noise:
        _print_noise(plan, console)
    if plan.placements:
        _print_placements(plan, console)
    if plan.exact_losses:
        _print_exact_losses(plan, console)
    if plan.traffic.steps:
        _print_traffic(plan, console)
    for note in plan.notes:
        print_line(console, note)
    print_heading(console, "Advice")
    print_line(console, plan.advice)


def _print_what_runs(plan: Plan, console: Console) -> None:
    print_heading(console, "What would run")
    print_line(console, f"Protocol: {plan.protocol}: {plan.why}")
    for sentence in plan.what_runs:
        print_line(console, sentence)
    if plan.epsilon is not None and plan.delta is not None:
        print_line(console, f"Budget: epsilon = {plan.epsilon:g}, delta = {plan.delta:.3g}, {_name_protected(plan)}.")
        print_line(console, f"Noise: {plan.who_adds_noise}")
    for warning in plan.warnings:
        print_line(console, f"WARNING: {warning}")
    print_line(console, f"Leaks: {plan.learned}")
    print_line(console, f"Withstands: {plan.withstands}")
    print_line(console, f"Breaks if: {plan.breaks_if}")


def _name_protected(plan: Plan) -> str:
    """Say what a budget is for."""
    if plan.noisy is Noisy.PARTLY:
        return "for the noise on revealed centres alone"
    unit = name_any(plan.unit or "record")
    return f"claimed for {unit}, falsely" if plan.noisy is Noisy.UNPROVED else f"for {unit} added or removed"


def _own_cases(plan: Plan) -> list[Case]:
    """Return the cases of the job's own epsilon."""
    return [case for case in plan.cases if case.epsilon == plan.epsilon]


def _print_losses(plan: Plan, console: Console) -> None:
    """Print the table over epsilon; if there are several sizes, print the table over sizes first."""
    if len(plan.records) == 1:
        print_heading(console, f"What to expect of {plan.records[0]:,} {plan.counted}")
        _print_cases(plan, list(plan.cases), console, heading="epsilon")
        return
    own = _own_cases(plan)
    what = "parties" if plan.by_parties else plan.counted
    print_heading(console, f"What to expect at epsilon = {plan.epsilon:g}, by the number of {what}")
    _print_cases(plan, own, console, heading=what)
    epsilons = sorted({case.epsilon for case in plan.cases})
    if len(epsilons) == 1:
        return
    print_heading(console, f"Loss / without privacy, by epsilon and number of {what}")
    table = make_table("epsilon", *(_size(plan, case) for case in own), left=0)
    for epsilon in epsilons:
        ratios = [plan.find_case(epsilon=epsilon, records=number).loss_ratio for number in plan.records]
        table.add_row(_mark(plan, epsilon), *(_span_of(one, format_ratio) for one in ratios))
    print_table(console, table)


def describe_forecast(plan: Plan) -> str | None:
    """Say what a plan expects of the loss and the smallest cluster, at the job's own epsilon; None if it does not."""
    case = next(iter(_own_cases(plan)), None)
    if case is None:
        return None
    said = (
        f"The plan expects {_span_of(case.loss_ratio, format_ratio)} times the loss of k-means without privacy, over "
        f"families of made-up records ({_size_in_words(plan, case)})."
    )
    if case.smallest_cluster is not None:
        seen = format_count(case.smallest_cluster)
        said += f" A compact, separate cluster of about {seen} records is found in half of the runs."
    return said


def _print_cases(plan: Plan, cases: list[Case], console: Console, *, heading: str) -> None:
    table = make_table(
        heading,
        "loss / without privacy",
        "noise, % of range",
        "smallest cluster seen",
        "without privacy",
        left=0,
    )
    for case in cases:
        name = _size(plan, case)
        if plan.by_parties and case.parties == plan.parties:
            name = f"(job) {name}"
        table.add_row(
            _mark(plan, case.epsilon) if heading == "epsilon" else name,
            _span_of(case.loss_ratio, format_ratio),
            _span_of(case.centre_noise, lambda noise: format_noise(50 * noise)),
            _smallest(case, case.smallest_cluster),
            _smallest(case, case.smallest_without_privacy),
        )
    print_table(console, table)
    print_line(
        console,
        "Ranges are over families of made-up records. Loss: mean squared distance to the nearest centre. Noise: "
        "standard deviation of a coordinate of a centre. Smallest "
        f"cluster: how many {plan.counted} a compact, separate cluster must have to get a centre in half of the "
        "runs; the last column is the same for k-means without privacy, which also misses small clusters.",
    )


def _print_families(plan: Plan, console: Console) -> None:
    own = _own_cases(plan)
    print_heading(console, f"Loss / without privacy at epsilon = {plan.epsilon:g}, by family")
    table = make_table("family", *(_size_in_words(plan, case) for case in own))
    for row in zip(*(case.losses for case in own), strict=True):
        table.add_row(row[0].family, *(format_ratio(loss.ratio) for loss in row))
    print_table(console, table)


def _print_noise(plan: Plan, console: Console) -> None:
    """Print the noise on a centre of average size for each column, in original units."""
    noises = [(_size_in_words(plan, case), case.centre_noise) for case in _own_cases(plan)]
    noises += [
        (f"{case.records:,} {plan.counted}", Range(low=case.centre_noise, high=case.centre_noise))
        for case in plan.round_noise
    ]
    print_heading(console, "Noise on a centre of average size, in original units (standard deviation)")
    table = make_table("column", *(size for size, _ in noises))
    axes = plan.coordinates
    for axis in axes[:_MOST_COLUMNS]:
        length = (axis.high - axis.low) / (axis.end - axis.start)
        spans = [Range(low=noise.low * length, high=noise.high * length) for _, noise in noises]
        table.add_row(Text(axis.name), *(_span_of(span, partial(_format_noise, axis)) for span in spans))
    print_table(console, table)
    if len(axes) > _MOST_COLUMNS:
        print_line(console, f"and {len(axes) - _MOST_COLUMNS} more columns, the same fraction of their ranges")
    if plan.cases:
        print_line(
            console,
            "How much a centre varies from run to run if clusters are clear. If there are none, k-means itself has "
            "many solutions, and centres move freely among them.",
        )
    else:
        print_line(console, "This is the noise of the last round, which gives the result.")


def _format_noise(axis: Coordinate, noise: float) -> str:
    """Format a deviation in a coordinate's units."""
    if axis.is_level:
        return f"{format_noise(100 * noise)} %"
    return f"{format_noise(noise)} d" if axis.kind == "date" else format_noise(noise)


def _print_placements(plan: Plan, console: Console) -> None:
    """Print what each choice of who adds the noise costs, and what shares cost so that parties may drop out."""
    print_heading(console, "Who could add the noise")
    table = make_table("placement", "who could take the noise away", "noise", "bytes", "steps", left=2)
    for one in plan.placements:
        table.add_row(
            _name_placement(one),
            one.removed_by,
            f"{one.noise_ratio:.3g}",
            format_bytes(one.traffic.total_bytes),
            f"{one.traffic.steps:,}",
        )
    print_table(console, table)
    print_line(
        console, "Noise: standard deviation of all noise on a number, as a multiple of that with the job's placement."
    )
    for one in plan.placements:
        if one.quorums:
            print_line(console, _describe_quorums(one))
    if plan.placements[0].smallest_clusters:
        _print_smallest(plan, console)


def _print_smallest(plan: Plan, console: Console) -> None:
    """Print the smallest cluster for each choice of who adds the noise."""
    print_heading(console, f"Smallest cluster seen at epsilon = {plan.epsilon:g}, by who adds the noise")
    table = make_table("placement", *(_size_in_words(plan, case) for case in _own_cases(plan)))
    for one in plan.placements:
        seen = ("-" if records is None else format_count(records) for records in one.smallest_clusters)
        table.add_row(_name_placement(one), *seen)
    print_table(console, table)
    print_line(console, "Tried with the job's placement; for the others scaled by the noise, as those trials show.")


def _name_placement(placement: PlacementForecast) -> str:
    return f"(job) {placement.placement}" if placement.chosen else placement.placement


def _describe_quorums(placement: PlacementForecast) -> str:
    """Say what tolerating parties that drop out costs in noise."""
    agreed, *others = placement.quorums
    start = "With" if placement.chosen else "In shares, with"
    said = (
        f"{start} min_parties = {agreed.min_parties} of {agreed.parties} and {agreed.colluding_max} that may collude, "
        f"all noise together has {_describe_variance(agreed)} times the variance that privacy needs"
    )
    for other in others:
        fewer = other.min_parties < agreed.min_parties
        what_for = "so that one may drop out" if fewer else "so that none may drop out"
        said += f"; with min_parties = {other.min_parties}, {what_for}, {_describe_variance(other)} times"
    return f"{said}."


def _describe_variance(quorum: QuorumNoise) -> str:
    return f"{quorum.parties}/{quorum.honest_min} = {quorum.variance_ratio:.3g}"


def _print_exact_losses(plan: Plan, console: Console) -> None:
    """Print what approximation costs where there is no noise."""
    print_heading(console, "Loss / k-means on whole records, by family")
    table = make_table("family", "loss")
    for loss in plan.exact_losses:
        table.add_row(loss.family, format_ratio(loss.ratio))
    print_table(console, table)


def _print_traffic(plan: Plan, console: Console) -> None:
    print_heading(console, "Traffic" + (" at most" if plan.traffic.at_most else ""))
    print_table(console, _tabulate_links(plan) if plan.links else _tabulate_parties(plan))
    memory = ""
    if plan.memory_bytes is not None:
        memory = (
            f" The computing party needs about {format_bytes(plan.memory_bytes)} of memory for ciphertexts and sums."
        )
    total = format_bytes(plan.traffic.total_bytes)
    print_line(console, f"{total} in total, in {plan.traffic.steps} steps, if nobody drops out.{memory}")


def _tabulate_parties(plan: Plan) -> Table:
    table = make_table("party", "sent", "received", "messages out", "messages in")
    rows: list[tuple[str, PartyBytes]] = [("each", plan.traffic.other)]
    if plan.traffic.leader != plan.traffic.other:
        others = "each other, at most" if plan.traffic.uneven else "each other"
        rows = [("the first", plan.traffic.leader), (others, plan.traffic.other)]
    for name, party in rows:
        table.add_row(
            name,
            format_bytes(party.bytes_up),
            format_bytes(party.bytes_down),
            f"{party.messages_up:,}",
            f"{party.messages_down:,}",
        )
    return table


def _tabulate_links(plan: Plan) -> Table:
    table = make_table("party", "does", "sent", "of that columns", "received", "messages each way", left=2)
    for link in plan.links:
        table.add_row(
            Text(link.name),
            link.does,
            format_bytes(link.carried.bytes_up),
            format_bytes(link.upload_bytes) if link.upload_bytes else "-",
            format_bytes(link.carried.bytes_down),
            f"{link.carried.messages_up:,}",
        )
    return table


def _mark(plan: Plan, epsilon: float) -> str:
    """Format an epsilon; the job's own is marked."""
    return f"(job) {epsilon:g}" if epsilon == plan.epsilon else f"{epsilon:g}"


def _size(plan: Plan, case: Case) -> str:
    return f"{case.parties if plan.by_parties else case.records:,}"


def _size_in_words(plan: Plan, case: Case) -> str:
    return f"{_size(plan, case)} {'parties' if plan.by_parties else plan.counted}"


def _span_of(span: Range, write: Callable[[float], str]) -> str:
    """Format a range; a single value if both ends look the same."""
    low, high = write(span.low), write(span.high)
    return low if low == high else f"{low} to {high}"


def _smallest(case: Case, records: int | None) -> str:
    if not case.looked_for_smallest:
        return "-"
    return "none" if records is None else format_count(records)
