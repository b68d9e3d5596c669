"""The forecast of a vertical job: who does what under which encryption, what it sends, and what it would find."""

from __future__ import annotations

from collections.abc import Sequence

from cloister.errors import ConfigError
from cloister.forecast.advice import advise_case, format_ratio
from cloister.forecast.model import Case, FamilyLoss, Forecast, PartyBytes, PartyLink, PlanRequest
from cloister.forecast.traffic import sum_up
from cloister.job import Job
from cloister.privacy.units import write_bound
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.forecaster import try_families
from cloister.protocols.vertical.leakage import describe_leakage, describe_who_adds_noise, find_replacement_epsilon
from cloister.protocols.vertical.noise import ChargedFlood
from cloister.protocols.vertical.options import PartyRoles, assign_roles, options_of
from cloister.protocols.vertical.settings import HOLDERS_MOST, Settings
from cloister.protocols.vertical.traffic import measure_links

_WORD_BYTES = 4
_SUM_BYTES = 24
"""Of a coefficient of a sum while it is made: an accumulator of eight, its reduced copy, and those of
re-randomisation."""


def require_records(request: PlanRequest) -> int:
    """Return how many records are aligned; refuse a plan without that number."""
    if request.records is None:
        raise ConfigError(
            "the plan of a vertical job must know how many records are aligned, which is public and determines "
            "ring, cells and bytes; got no number. Use --records N, or write records = N under [data]."
        )
    return request.records


def forecast_vertical(job: Job, agreement: VerticalAgreement, request: PlanRequest) -> Forecast:
    """Forecast what a vertical job would do, cost and find.

    Raises
    ------
    ConfigError
        If epsilons are to be compared without a budget.
    """
    settings = agreement.settings
    if settings.is_exact and request.epsilons:
        raise ConfigError("epsilons must be left out where there is no [budget]; got some. Add one, or leave them out.")
    carried = measure_links(agreement)
    cases, exact_losses = try_families(settings, request)
    return Forecast(
        leakage=describe_leakage(agreement),
        who_adds_noise=None if settings.is_exact else _describe_who_adds_noise(settings),
        rounds_max=settings.rounds_made,
        traffic=sum_up(carried, steps=agreement.steps, leader=agreement.computing),
        what_runs=_describe_run(job, agreement),
        cases=cases,
        notes=_list_notes(job, settings),
        advice=_advise(settings, cases, exact_losses),
        exact_losses=exact_losses,
        links=_describe_links(job, agreement, carried),
        memory_bytes=count_memory(agreement),
        middleman="relay",
    )


# --- who does what ----------------------------------------------------------------------------------------------------


def count_memory(agreement: VerticalAgreement) -> int:
    """Return what the computing party needs: both halves of every ciphertext, and the sums of the largest pass."""
    parameters = agreement.parameters
    polynomial = len(parameters.primes) * parameters.degree
    ciphertexts = 2 * _WORD_BYTES * polynomial * agreement.bodies * agreement.blocks
    return ciphertexts + _SUM_BYTES * polynomial * max(agreement.settings.lengths)


def _describe_links(job: Job, agreement: VerticalAgreement, carried: Sequence[PartyBytes]) -> tuple[PartyLink, ...]:
    roles = assign_roles(job)
    uploaded = dict.fromkeys(range(len(job.parties)), 0)
    for holder, place in enumerate(roles.encrypted):
        uploaded[place] = sum(agreement.upload_bytes(holder, upload) for upload in range(agreement.uploads))
    return tuple(
        PartyLink(name=party.name, does=_describe_role(roles, place), carried=link, upload_bytes=uploaded[place])
        for place, (party, link) in enumerate(zip(job.parties, carried, strict=True))
    )


def _describe_role(roles: PartyRoles, place: int) -> str:
    parts = []
    if place == roles.computing:
        parts.append("computes on ciphertexts")
    if place in roles.encrypted:
        parts.append("encrypts its columns")
    if place in roles.key_holders:
        some = roles.threshold < len(roles.key_holders)
        alone = len(roles.key_holders) == 1
        parts.append(
            "decrypts" if alone else f"decrypts, {roles.threshold} at a time" if some else "decrypts its share"
        )
    return ", ".join(parts)


def _describe_who_adds_noise(settings: Settings) -> str:
    """Say who adds the noise, as on the privacy card, and how much of it is needed."""
    said, placement = describe_who_adds_noise(settings.placement), settings.placement
    if placement.parties == 2:
        return said
    return f"{said.removesuffix('.')}; the shares of any {placement.honest_min} suffice."


def _describe_run(job: Job, agreement: VerticalAgreement) -> tuple[str, ...]:
    """Say how it runs, under which encryption, and why so."""
    settings, parameters = agreement.settings, agreement.parameters
    rounds = settings.rounds_made
    first = "one pass for a joint histogram, then " if settings.start == "synopsis" else "random centres, then "
    holders = range(len(agreement.encrypted))
    joint = f", {settings.joint_cells:,} joint ones" if len(holders) > 1 else ""
    several = f"{rounds} rounds of Lloyd's algorithm"
    sentences = [
        f"Rounds: {first}{several if rounds > 1 else 'one round'}.",
        f"Encryption: {' x '.join(str(settings.cells_of(holder)) for holder in holders)} cells{joint}; ring "
        f"{parameters.degree:,}, modulus of {parameters.modulus_bits} bits (at most what the standard allows for "
        f"128-bit security), sums of {parameters.plaintext_modulus.bit_length() - 1} bits. Errors are hidden by "
        f"{_describe_flood(agreement)}.",
    ]
    replacement = find_replacement_epsilon(settings)
    if replacement is not None:
        sentences.append(
            "All parties know which records take part. For the values of a record that is known to be there the "
            f"privacy card will say epsilon = {write_bound(replacement)}; for one record added or removed it is the "
            "budget's."
        )
    return (*sentences, _explain_comparison(settings), *_explain_roles(job), _explain_cells(settings))


def _describe_flood(agreement: VerticalAgreement) -> str:
    if isinstance(agreement.flood, ChargedFlood):
        return "Gaussian noise; what they still reveal is charged to the budget: a smaller modulus, half the upload"
    return f"uniform noise, 2^{agreement.distance_bits} times as large, for which some of delta is kept"


def _explain_comparison(settings: Settings) -> str:
    """Why cells, and what they cost."""
    sums = "sums are of the values themselves" if settings.has_residuals else "sums are of the cells' middles"
    return (
        f"Cells, and no comparison under encryption: at most {HOLDERS_MOST} parties may encrypt columns, and here "
        f"{len(settings.columns_encrypted)} will. Whoever computes knows which cluster a record joins for every cell "
        "that it may be in, and adds up products with encrypted zeros and ones. Decisions see encrypted columns "
        f"through their cells; {sums}."
    )


def _explain_roles(job: Job) -> tuple[str, str]:
    """Why this party computes, and why this model."""
    roles, options = assign_roles(job), options_of(job)
    name = job.parties[roles.computing].name
    if options.computing is not None:
        why = "the job says so"
    elif not roles.columns[roles.computing]:
        why = "it holds no columns and can do nothing else"
    else:
        why = "it holds the most columns (the first party, on ties), and what it holds need not be encrypted"
    some = f" Any {roles.threshold} of {len(roles.key_holders)} key holders are enough."
    models = {
        "two-party": "two-party: the other one holds the key, and nobody else is needed.",
        "server-aided": "server-aided: cheaper than a collective key, but the computing party and the key holder "
        "together can read everyone's columns.",
        "collective": "collective: no party alone can decrypt, so nobody must be trusted not to collude with the one "
        "that computes; rings are larger and both halves of a ciphertext travel."
        + (some if roles.threshold < len(roles.key_holders) else ""),
    }
    chosen = "The job chooses the model" if options.model is not None else "The model follows from who takes part"
    return f"{name} computes: {why}.", f"{chosen}, {models[roles.model]}"


def _explain_cells(settings: Settings) -> str:
    """Why so many cells."""
    holders = range(len(settings.columns_encrypted))
    found = "centres of its records" if settings.is_exact else "the centres of a small k-means, paid from the budget"
    each = "; ".join(
        f"{settings.cells_of(holder)} cells ({'a grid' if settings.is_grid(holder) else found})" for holder in holders
    )
    if settings.cells is not None:
        why = "the job says how many at most"
    elif len(holders) > 1:
        why = "fewer each where several holders' cells are multiplied into joint ones"
    elif settings.cells_of(0) > 16 or settings.clusters > 8:
        why = "many, because two or more columns or more than eight clusters need finer decisions"
    else:
        why = "few, which suffices for one column and up to eight clusters; upload and time grow with them"
    residuals = " It also encrypts where in its cells its records are: (1 + its columns) times the upload."
    return f"Encrypted columns are sorted into {each}: {why}.{residuals if settings.has_residuals else ''}"


def _list_notes(job: Job, settings: Settings) -> tuple[str, ...]:
    """What the reader must know about how the numbers were found."""
    notes = [
        f"{settings.records:,} records are assumed to be aligned. That number is public to all parties; a run with "
        "a different number may have a different ring and traffic."
    ]
    if job.data.id is not None:
        notes.append("Messages that align IDs are not counted.")
    if options_of(job).labels:
        notes.append("Nor are those of the session in which parties get their records' labels.")
    notes.append(
        "Losses and noise are for made-up records whose extremes are the bounds, compared with k-means on whole "
        "records: bounds that are too wide cost more, and records unlike any family may do better or worse."
    )
    return tuple(notes)


def _advise(settings: Settings, cases: Sequence[Case], exact_losses: Sequence[FamilyLoss]) -> str:
    """Say what the job is good for."""
    if settings.budget is not None:
        own = next(case for case in cases if case.epsilon == settings.budget.epsilon)
        return advise_case(settings, own, cases)
    ratios = [loss.ratio for loss in exact_losses]
    least, most = format_ratio(min(ratios)), format_ratio(max(ratios))
    return (
        f"There is no budget: sums and centres are exact, and nothing is differentially private. On made-up records "
        f"the loss is {least if least == most else f'{least} to {most}'} times that of k-means on whole "
        "records, since decisions see encrypted columns through cells. More cells would reduce this, at more upload."
    )
