"""From a vertical job to a plan. How many records are aligned is public, and needed: the ring follows from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cloister.crypto import Stream
from cloister.crypto.identity import PUBLIC_KEY_BYTES
from cloister.errors import ConfigError
from cloister.job import Job
from cloister.planning.advice import advise_case
from cloister.planning.description import Found, describe
from cloister.planning.epsilons import choose_epsilons
from cloister.planning.families import FAMILIES
from cloister.planning.forecast import FULL, QUICK, WIDE
from cloister.planning.model import Case, FamilyLoss, PartyBytes, Plan, Traffic
from cloister.planning.rounding import format_ratio
from cloister.planning.vertical_forecast import VerticalForecaster
from cloister.planning.vertical_outline import outline_vertical
from cloister.planning.vertical_traffic import forecast_vertical
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.leakage import describe_leakage
from cloister.protocols.vertical.settings import Settings
from cloister.runtime.local import OnProgress, Progress
from cloister.simulation.vertical import make_vertical_agreement

_WIDE, _SLOW = 10, 50  # columns or clusters: beyond, fewer runs; and where it must be quick, no other epsilon


def plan_vertical(
    job: Job,
    *,
    records: int | None,
    epsilons: Sequence[float] | None,
    quick: bool,
    on_progress: OnProgress | None,
) -> Plan:
    """Say what a vertical job would do, cost and find; parameters as :func:`~cloister.planning.draft.plan`.

    Raises
    ------
    ConfigError
        If nobody says how many records are aligned, or epsilons are to be compared without a budget.
    """
    if records is None:
        raise ConfigError(
            "the plan of a vertical job must know how many records are aligned, which is public and decides about "
            "ring, cells and bytes; got no number. Say --records N, or write records = N under [data]."
        )
    if job.budget is None and epsilons:
        raise ConfigError("epsilons must be left out where there is no [budget]; got some. Add one, or leave them out.")
    directory = (bytes(PUBLIC_KEY_BYTES),) * len(job.parties)  # who the parties are changes no length
    agreement = make_vertical_agreement(job, directory, records=records, alignment=None)
    links = forecast_vertical(agreement)
    cases, exact_losses = _forecast(agreement.settings, epsilons, quick=quick, on_progress=on_progress)
    leakage = describe_leakage(agreement)
    return describe(
        job,
        (records,),
        placement=None if job.budget is None else _say_who_adds_noise(agreement),
        leakage=leakage,
        breaks_if=leakage.breaks_if,
        rounds_max=agreement.settings.rounds_made,
        traffic=_sum_up_links(agreement, links),
        found=Found(
            cases=cases,
            notes=_list_notes(job, agreement),
            advice=_advise(agreement.settings, cases, exact_losses),
            vertical=outline_vertical(job, agreement, links, exact_losses),
        ),
    )


def _forecast(
    settings: Settings, epsilons: Sequence[float] | None, *, quick: bool, on_progress: OnProgress | None
) -> tuple[tuple[Case, ...], tuple[FamilyLoss, ...]]:
    """Try every epsilon; the smallest cluster at the job's own only. Without a budget there is but one case."""
    own = None if settings.budget is None else settings.budget.epsilon
    size = max(settings.dimensions, settings.clusters)
    if quick and size > _SLOW and epsilons is None:
        epsilons = ()
    tried = () if own is None else choose_epsilons(own, epsilons)
    forecaster = VerticalForecaster(
        settings,
        effort=QUICK if quick else WIDE if size > _WIDE else FULL,
        stream=Stream.from_seed(0, "plan"),
        on_trial=_count_trials(max(len(tried), 1) * len(FAMILIES) + len(tried[:1]), on_progress),
    )
    if own is None:
        return (), forecaster.compare_exactly()
    return tuple(forecaster.forecast(epsilon, look_for_smallest=epsilon == own) for epsilon in tried), ()


def _count_trials(steps: int, on_progress: OnProgress | None) -> Callable[[str], None]:
    done = 0

    def tell(label: str) -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(Progress(step=done, steps=steps, label=label, waiting_for=()))

    return tell


def _sum_up_links(agreement: VerticalAgreement, links: Sequence[PartyBytes]) -> Traffic:
    """The computing party's link, and the busiest of the others; the outline has all of them."""
    others = [link for number, link in enumerate(links, start=1) if number != agreement.computing]
    return Traffic(
        steps=agreement.steps,
        leader=links[agreement.computing - 1],
        other=max(others, key=lambda link: link.bytes_up + link.bytes_down),
        total_bytes=sum(link.bytes_up + link.bytes_down for link in links),
        uneven=len(others) > 1,
    )


def _say_who_adds_noise(agreement: VerticalAgreement) -> str:
    """As the privacy card will say it."""
    placement = agreement.settings.placement
    if placement.parties == 2:
        return "The computing party under encryption, and the key holder after decryption; each adds all of it."
    return (
        f"The computing party under encryption, and each of the {placement.parties - 1} that decrypt; the shares of "
        f"any {placement.honest_min} are all that is wanted."
    )


def _list_notes(job: Job, agreement: VerticalAgreement) -> tuple[str, ...]:
    """What the reader must know about how the numbers were found."""
    notes = [
        f"{agreement.settings.records:,} records are taken to be aligned. That number is public to all parties; a run "
        "with another one may have another ring and other bytes."
    ]
    if job.data.id is not None:
        notes.append("Messages that align IDs are not counted.")
    if job.protocol.labels:
        notes.append("Nor are those of the session in which parties get their records' labels.")
    notes.append(
        "Losses and noise are of made-up records whose extremes are the bounds, against k-means on whole records: "
        "bounds that are too wide cost more, and records that are not like any family may do better or worse."
    )
    return tuple(notes)


def _advise(settings: Settings, cases: Sequence[Case], exact_losses: Sequence[FamilyLoss]) -> str:
    """Say what the job is good for."""
    if settings.budget is not None:
        own = next(case for case in cases if case.epsilon == settings.budget.epsilon)
        return advise_case(settings, own, cases)
    ratios = [loss.ratio for loss in exact_losses]
    return (
        f"There is no budget: sums and centres are exact, and nothing is differentially private. On made-up records "
        f"the loss is {format_ratio(min(ratios))} to {format_ratio(max(ratios))} times that of k-means on whole "
        "records, since decisions see encrypted columns through cells. More cells would come nearer, at more upload."
    )
