"""From a job to a plan. Only the job is read: its columns, bounds, clusters, budget and the number of its parties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cloister.crypto import Stream
from cloister.crypto.identity import PUBLIC_KEY_BYTES
from cloister.errors import ConfigError
from cloister.job import Job
from cloister.job.protocol_checks import MAX_COUNT
from cloister.job.secfc_checks import SECFC
from cloister.planning.advice import advise_lloyd, advise_synopsis, list_notes
from cloister.planning.description import Found, describe
from cloister.planning.epsilons import choose_epsilons
from cloister.planning.feddp import advise_feddp, estimate_round_noise, list_feddp_notes
from cloister.planning.forecast import FULL, QUICK, WIDE, Forecaster, count_trials, is_slow
from cloister.planning.model import Case, Plan, RoundNoise, Size
from cloister.planning.ring_traffic import forecast_ring
from cloister.planning.secfc_traffic import forecast_secfc
from cloister.planning.traffic import forecast_guided, forecast_lloyd
from cloister.planning.vertical_draft import plan_vertical
from cloister.privacy.units import Unit
from cloister.protocols.feddp import FEDDP
from cloister.protocols.feddp import LEAKAGE as FEDDP_LEAKAGE
from cloister.protocols.multiparty_lloyd import LEAKAGE as LLOYD_LEAKAGE
from cloister.protocols.multiparty_lloyd import NoisePlan
from cloister.protocols.secfc import NOISE_PROTECTS
from cloister.protocols.synopsis import LEAKAGE, Settings
from cloister.protocols.vertical.settings import VERTICAL
from cloister.records import FloatArray
from cloister.runtime.local import OnProgress, Progress
from cloister.simulation import make_agreement
from cloister.simulation.feddp import NO_SERVER, as_synopsis, make_feddp_agreement, read_server
from cloister.simulation.lloyd import name_break
from cloister.simulation.ring import make_terms
from cloister.simulation.secfc import find_leakage, make_secfc_agreement
from cloister.simulation.synopsis import make_synopsis_agreement

RECORDS = (1_000, 10_000, 100_000, 1_000_000)
"""Tried where the job does not say how many records there are, and nobody else does."""
PARTY_FACTORS = (1, 10, 100)
"""Client level: how many times the job's parties are tried. They are the units, and their number is public."""
_RECORDS_EACH = 100  # client level: what a party is taken to hold where nobody says

_COLUMNS_MOST = 500  # for several epsilons: beyond, a trial takes a second


def plan(
    job: Job,
    *,
    records: int | None = None,
    epsilons: Sequence[float] | None = None,
    quick: bool = False,
    on_progress: OnProgress | None = None,
) -> Plan:
    """Say what a job would do, cost and find, before anything is spent. No party's table is opened.

    Parameters
    ----------
    job
        What is to be agreed.
    records
        About how many records all parties have together, where the job does not declare it. It is a private number:
        guess it from what is public. In a vertical job it is public, and needed: how many records are aligned.
    epsilons
        To compare with the job's own; by default 0.1, 0.25, 0.5, 1 and 2, or none where that would take long.
    quick
        Try less: some seconds instead of half a minute, and coarser.
    on_progress
        Told about each family of made-up records that was tried.

    Raises
    ------
    ConfigError
        If a number is out of range, if the job declares another number of records, or if nobody says how many there
        are of a vertical job.
    """
    if job.protocol.name == VERTICAL:
        known = _choose_records(job, records) if records is not None or job.data.records is not None else None
        return plan_vertical(
            job, records=None if known is None else known[0], epsilons=epsilons, quick=quick, on_progress=on_progress
        )
    sizes = _choose_sizes(job, records)
    numbers = tuple(size.records for size in sizes)
    directory = (bytes(PUBLIC_KEY_BYTES),) * len(job.parties)  # who the parties are changes no length
    if job.protocol.name == SECFC:
        return _plan_secfc(job, numbers, directory)
    if job.protocol.name == FEDDP:
        server = read_server(job)
        if server is not None:
            return _plan_feddp(job, numbers, directory, server)
        usual = plan(as_synopsis(job), records=records, epsilons=epsilons, quick=quick, on_progress=on_progress)
        return replace(usual, why=f"{NO_SERVER} {usual.why}")
    if job.protocol.name != "synopsis":
        if epsilons:
            raise ConfigError(
                f"epsilons must be left out with the protocol {job.protocol.name}: losses are compared for the "
                "synopsis only. Change budget.epsilon and plan again: the noise goes with 1 / epsilon."
            )
        return _plan_lloyd(job, numbers, directory)
    agreement = make_synopsis_agreement(job, directory)
    settings = agreement.settings
    tried = _choose_epsilons(settings, epsilons, hasty=quick + (len(numbers) > 1) + is_slow(settings) > 1)
    cases = _forecast(settings, sizes, epsilons=tried, quick=quick, on_progress=on_progress)
    return describe(
        job,
        numbers,
        placement=settings.placement.who_adds,
        leakage=LEAKAGE,
        breaks_if=agreement.breaks_if,
        rounds_max=len(settings.slots),
        traffic=forecast_guided(agreement),
        found=Found(
            cases=cases, notes=list_notes(settings, sizes, guess=records), advice=advise_synopsis(settings, cases)
        ),
    )


def _plan_secfc(job: Job, numbers: tuple[int, ...], directory: tuple[bytes, ...]) -> Plan:
    """SecFC: the code, the field and the most that goes over the wire, for the largest number of records."""
    agreement = make_secfc_agreement(job, directory, records=max(numbers), alignment=job.data.id)
    field = "one prime, 2^61 - 1" if agreement.field.residues == 1 else "two primes below 2^61"
    spare = agreement.parties - agreement.code.replies
    return describe(
        job,
        numbers,
        placement=None,
        leakage=find_leakage(agreement),
        breaks_if=find_leakage(agreement).breaks_if,
        rounds_max=agreement.rounds_max,
        traffic=forecast_secfc(agreement),
        found=Found(
            notes=(
                f"With {max(numbers):,} records: coordinates of {agreement.bits} bits, {field}. Up to "
                f"{agreement.privacy} of {agreement.parties} clients together learn nothing from their shares; {spare} "
                "may be silent in a round.",
                "Bytes are for all rounds and parties with equally many records; it ends earlier as soon as "
                "assignments repeat, which is the rule. Messages that align IDs are not counted."
                + (" How many records there are is assumed: say --records N." if len(numbers) > 1 else ""),
            ),
            advice=advise_lloyd(job.protocol.name, ())
            if agreement.centre_noise is None
            else "Labels are exact, revealed centres carry noise, and the result as a whole is not differentially "
            f"private. {NOISE_PROTECTS}",
        ),
    )


def _plan_feddp(job: Job, numbers: tuple[int, ...], directory: tuple[bytes, ...], server: FloatArray) -> Plan:
    """FedDP-KMeans: the noise of its last step for each number of records, and what it sends."""
    agreement = make_feddp_agreement(job, directory, server)
    settings = agreement.settings
    return describe(
        job,
        numbers,
        placement=settings.placement.who_adds,
        leakage=FEDDP_LEAKAGE,
        breaks_if=agreement.breaks_if,
        rounds_max=len(settings.slots),
        traffic=forecast_guided(agreement),
        found=Found(
            round_noise=() if settings.client_level else estimate_round_noise(settings, server, numbers),
            notes=list_feddp_notes(settings),
            advice=advise_feddp(settings),
        ),
    )


def _plan_lloyd(job: Job, numbers: tuple[int, ...], directory: tuple[bytes, ...]) -> Plan:
    agreement = make_agreement(job, directory)
    noise, in_ring = agreement.noise, job.protocol.topology == "ring"
    round_noise = () if noise is None else tuple(_noise_of_round(noise, number) for number in numbers)
    return describe(
        job,
        numbers,
        placement=None if noise is None else noise.placement.who_adds,
        leakage=LLOYD_LEAKAGE[agreement.variant],
        breaks_if=name_break(agreement, in_ring=in_ring),
        rounds_max=agreement.iterations,
        traffic=forecast_ring(make_terms(agreement)) if in_ring else forecast_lloyd(agreement),
        found=Found(
            round_noise=round_noise,
            advice=advise_lloyd(job.protocol.name, round_noise, flaw="" if noise is None else noise.flaw),
        ),
    )


def _noise_of_round(noise: NoisePlan, records: int) -> RoundNoise:
    """The noise on a centre of average size."""
    return RoundNoise(records=records, centre_noise=noise.blur_centre(max(1.0, records / noise.clusters)))


def _forecast(
    settings: Settings,
    sizes: tuple[Size, ...],
    *,
    epsilons: tuple[float, ...],
    quick: bool,
    on_progress: OnProgress | None,
) -> tuple[Case, ...]:
    """Try every epsilon with every size; the smallest cluster where that is many runs at the job's epsilon only."""
    many = len(sizes) > 1 or is_slow(settings)
    wanted = [
        (size, epsilon, settings.clusters > 1 and (not many or epsilon == settings.budget.epsilon))
        for size in sizes
        for epsilon in epsilons
    ]
    tried, all_trials = 0, count_trials([looks for _, _, looks in wanted])

    def tell(label: str) -> None:
        nonlocal tried
        tried += 1
        if on_progress is not None:
            on_progress(Progress(step=tried, steps=max(tried, all_trials), label=label, waiting_for=()))

    effort = QUICK if quick else WIDE if many else FULL
    forecaster = Forecaster(settings, effort=effort, stream=Stream.from_seed(0, "plan"), on_trial=tell)
    return tuple(
        forecaster.forecast(epsilon=epsilon, records=size.records, parties=size.parties, look_for_smallest=looks)
        for size, epsilon, looks in wanted
    )


def _choose_sizes(job: Job, guess: int | None) -> tuple[Size, ...]:
    """Which sizes to try: of records, or at client level of parties with as many records each."""
    numbers, parties = _choose_records(job, guess), len(job.parties)
    if job.budget is None or job.budget.unit is not Unit.CLIENT:
        return tuple(Size(records=number, parties=parties) for number in numbers)
    known = job.data.records or guess
    records = max(_RECORDS_EACH * parties, 10 * job.k) if known is None else known
    return tuple(Size(records=factor * records, parties=factor * parties) for factor in PARTY_FACTORS)


def _choose_records(job: Job, guess: int | None) -> tuple[int, ...]:
    """The declared number, or the guess, or a few."""
    declared = job.data.records
    if guess is None:
        return tuple(number for number in RECORDS if number >= 10 * job.k) if declared is None else (declared,)
    if not job.k <= guess <= MAX_COUNT:
        raise ConfigError(f"records must be from clusters.k = {job.k} to {MAX_COUNT}; got {guess}.")
    if declared is not None and guess != declared:
        raise ConfigError(
            f"records must be what the job declares, data.records = {declared}; got {guess}. Leave one of them out."
        )
    return (guess,)


def _choose_epsilons(settings: Settings, wanted: Sequence[float] | None, *, hasty: bool) -> tuple[float, ...]:
    """The ones asked for, or the usual ones where they do not take too long, and the job's own; rising."""
    if wanted is None and (hasty or settings.dimensions > _COLUMNS_MOST):
        wanted = ()
    return choose_epsilons(settings.budget.epsilon, wanted)
