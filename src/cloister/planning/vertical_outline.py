"""Who does what in a vertical job, under which encryption, at what cost; and why, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from cloister.job import Job
from cloister.job.vertical_roles import VerticalRoles, resolve_vertical
from cloister.planning.model import FamilyLoss, PartyBytes, VerticalOutline, VerticalParty
from cloister.planning.vertical_traffic import Contents
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.flood import STATISTICAL_BITS, ChargedFlood
from cloister.protocols.vertical.settings import HOLDERS_MOST, Settings
from cloister.simulation.vertical import find_replacement_epsilon

_WORD_BYTES = 4
_SUM_BYTES = 24
"""Of a coefficient of a sum while it is made: an accumulator of eight, its reduced copy, and those of
re-randomisation."""


def outline_vertical(
    job: Job, agreement: VerticalAgreement, traffic: Sequence[PartyBytes], exact_losses: tuple[FamilyLoss, ...] = ()
) -> VerticalOutline:
    """Describe a vertical job.

    Parameters
    ----------
    job, agreement
        What is to be agreed.
    traffic
        What each party's link carries, in the job's order.
    exact_losses
        What was found on made-up records, where there is no budget.
    """
    settings, parameters, contents = agreement.settings, agreement.parameters, Contents(agreement)
    roles = resolve_vertical(job)
    parties = tuple(
        VerticalParty(
            name=party.name,
            does=_say_role(roles, place),
            carried=carried,
            upload_bytes=_count_uploads(agreement, contents, place + 1),
        )
        for place, (party, carried) in enumerate(zip(job.parties, traffic, strict=True))
    )
    return VerticalOutline(
        model=agreement.model,
        parties=parties,
        cells=tuple(settings.cells_of(holder) for holder in range(len(agreement.encrypted))),
        joint_cells=settings.joint_cells,
        passes=contents.numbers,
        ring_degree=parameters.degree,
        modulus_bits=parameters.modulus_bits,
        plaintext_bits=parameters.plaintext_modulus.bit_length() - 1,
        flood=_say_flood(agreement),
        memory_bytes=count_memory(agreement),
        replacement_epsilon=find_replacement_epsilon(settings),
        exact_losses=exact_losses,
        reasons=(_explain_comparison(settings), *_explain_roles(job, roles), _explain_cells(settings)),
    )


def count_memory(agreement: VerticalAgreement) -> int:
    """Return what the computing party needs: both halves of every ciphertext, and the sums of the largest pass."""
    parameters = agreement.parameters
    polynomial = len(parameters.primes) * parameters.degree
    ciphertexts = 2 * _WORD_BYTES * polynomial * agreement.bodies * agreement.blocks
    sums = _SUM_BYTES * polynomial * max(Contents(agreement).numbers)
    return ciphertexts + sums


def _count_uploads(agreement: VerticalAgreement, contents: Contents, party: int) -> int:
    if party not in agreement.encrypted:
        return 0
    return sum(contents.count_upload(party, upload) for upload in range(agreement.uploads))


def _say_role(roles: VerticalRoles, place: int) -> str:
    parts = []
    if place == roles.computing:
        parts.append("computes on ciphertexts")
    if place in roles.encrypted:
        parts.append("encrypts its columns")
    if place in roles.key_holders:
        share = roles.threshold < len(roles.key_holders)
        alone = len(roles.key_holders) == 1
        parts.append(
            "decrypts" if alone else f"decrypts, {roles.threshold} at a time" if share else "decrypts its share"
        )
    return ", ".join(parts)


def _say_flood(agreement: VerticalAgreement) -> str:
    if isinstance(agreement.flood, ChargedFlood):
        return "Gaussian noise, and what it leaves over is charged to the budget: a smaller modulus, half the upload"
    return f"uniform noise, 2^{STATISTICAL_BITS} times as large: nothing is charged"


def _explain_comparison(settings: Settings) -> str:
    """Why cells, and what they cost."""
    sums = "sums are of the values themselves" if settings.has_residuals else "sums are of the cells' middles"
    return (
        f"Cells, and no comparison under encryption: at most {HOLDERS_MOST} parties may encrypt columns, and here "
        f"{len(settings.columns_encrypted)} will. Whoever computes knows which cluster a record joins for every cell "
        "that it may be in, and adds up products with encrypted zeros and ones. Decisions see encrypted columns "
        f"through their cells; {sums}."
    )


def _explain_roles(job: Job, roles: VerticalRoles) -> tuple[str, ...]:
    """Why this party computes, and why this model."""
    name = job.parties[roles.computing].name
    if job.protocol.computing is not None:
        why = "the job says so"
    elif not roles.columns[roles.computing]:
        why = "it holds no columns and can do nothing else"
    else:
        why = "it holds most columns, the first of equals, and what it holds need not be encrypted"
    models = {
        "two-party": "two-party: the other one holds the key, and nobody else is needed.",
        "server-aided": "server-aided: cheaper than a collective key, but the computing party and the key holder "
        "together can read everyone's columns.",
        "collective": "collective: no party alone can decrypt, so nobody need be trusted not to collude with the one "
        "that computes; rings are larger and both halves of a ciphertext travel."
        + (
            f" Any {roles.threshold} of {len(roles.key_holders)} key holders are enough."
            if roles.threshold < len(roles.key_holders)
            else ""
        ),
    }
    chosen = "The job chose the model" if job.protocol.model is not None else "The model follows from who takes part"
    return f"{name} computes: {why}.", f"{chosen}, {models[roles.model]}"


def _explain_cells(settings: Settings) -> str:
    """Why so many cells."""
    holders = range(len(settings.columns_encrypted))
    kinds = {
        holder: "a grid" if settings.is_grid(holder) else "the centres of a small k-means, paid from the budget"
        for holder in holders
    }
    if settings.is_exact:
        kinds = {holder: "a grid" if settings.is_grid(holder) else "centres of its records" for holder in holders}
    each = "; ".join(f"{settings.cells_of(holder)} cells ({kinds[holder]})" for holder in holders)
    if settings.cells is not None:
        why = "the job says how many at most"
    elif len(holders) > 1:
        why = "fewer each where several holders' cells are multiplied into joint ones"
    elif settings.cells_of(0) > 16 or settings.clusters > 8:
        why = "many, for two columns and more or for more than eight clusters need finer decisions"
    else:
        why = "few, which is enough for one column and up to eight clusters; upload and time grow with them"
    residuals = (
        " It also encrypts where in its cells its records lie: (1 + its columns) times the upload."
        if settings.has_residuals
        else ""
    )
    return f"Encrypted columns are sorted into {each}: {why}.{residuals}"
