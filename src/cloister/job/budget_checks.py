"""What must hold for ``[budget]`` and ``[ledger]``, and for the noise that a budget asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.job.defaults import ASSIGNMENT, resolve_noise
from cloister.job.fastlloyd_checks import FASTLLOYD
from cloister.job.problems import KeyPath, check_choice, check_integer, check_number, refuse, show_value
from cloister.job.secfc_checks import SECFC
from cloister.privacy.units import Budget, Unit
from cloister.protocols.feddp.settings import FEDDP
from cloister.protocols.synopsis.settings import SYNOPSIS
from cloister.protocols.vertical.settings import VERTICAL

if TYPE_CHECKING:
    from cloister.job.model import Job, ProtocolOptions

PRIVATE_PROTOCOLS = (SYNOPSIS, FEDDP, FASTLLOYD, "mask-noise-average")
NOISES = ("gaussian", "laplace")
PLACEMENTS = ("aggregator", "shared", "local", "joint")


def check_budget(job: Job) -> None:
    """Refuse a budget that is none, any budget with a protocol that adds no noise, and noise without a budget."""
    budget, protocol = job.budget, job.protocol
    private = protocol.name in PRIVATE_PROTOCOLS
    if protocol.name == SECFC and budget is not None:
        _check_centre_noise(job, budget)
        return
    if protocol.name == VERTICAL:
        _check_ledger(job)
        _check_vertical_noise(job)
        return
    for key in ("noise", "norm_bound", "placement", "colluding_max", "honest_fraction"):
        if getattr(protocol, key) is not None and not private:
            what_to_do = f"The protocol {protocol.name} adds no noise: remove it."
            refuse(("protocol", key), f"come with one of {', '.join(PRIVATE_PROTOCOLS)}", protocol.name, what_to_do)
    _check_ledger(job)
    if budget is None:
        if private:
            what_to_do = "Write: [budget], epsilon = 1.0. It is what all releases together may cost."
            refuse(("protocol", "name"), "come with a [budget]", f"{protocol.name} without one", what_to_do)
        return
    if not private:
        what_to_do = (
            f"The protocol {protocol.name} releases exact aggregates, so a budget would promise what it does not "
            "keep: remove [budget], or use synopsis, fastlloyd or mask-noise-average."
        )
        refuse(("budget",), "be left out", f"epsilon = {show_value(budget.epsilon)}", what_to_do)
    if budget.delta == 0 and resolve_noise(protocol) != "laplace":
        what_to_do = "Gaussian noise cannot give pure epsilon: write delta = 1e-6"
        what_to_do += "." if protocol.name in (SYNOPSIS, FEDDP) else ', or noise = "laplace" in [protocol].'
        refuse(("budget", "delta"), "be greater than 0 with Gaussian noise", show_value(budget.delta), what_to_do)
    if protocol.name not in (SYNOPSIS, FEDDP):
        _check_lloyd_noise(budget, protocol)
    _check_placement(protocol, len(job.parties), budget.delta)


def _check_ledger(job: Job) -> None:
    """Refuse a ledger without a folder, and one that would have nothing to record."""
    if job.ledger is None:
        return
    if not isinstance(job.ledger, str) or not job.ledger.strip():
        refuse(("ledger", "path"), "be the path of a folder", show_value(job.ledger))
    if job.budget is None:
        what_to_do = "A ledger records what a budget spends: remove [ledger]."
        refuse(("ledger",), "come with a [budget]", "none", what_to_do)


def _check_vertical_noise(job: Job) -> None:
    """Vertical: a budget may be left out, and then all sums are exact; its noise is Gaussian, for single records."""
    if job.budget is None:
        if job.protocol.colluding_max is not None:
            what_to_do = "It says who may know whose noise, and there is none: remove it."
            refuse(("protocol", "colluding_max"), "come with a [budget]", "none", what_to_do)
        return
    if job.budget.delta == 0:
        what_to_do = "Its noise is Gaussian: write delta = 1e-6."
        refuse(("budget", "delta"), "be greater than 0 with the protocol vertical", "0", what_to_do)
    if job.budget.unit is not Unit.RECORD:
        what_to_do = "A party has a column of every record, which no noise can hide."
        refuse(("budget", "unit"), 'be "record" for vertical', show_value(job.budget.unit.value), what_to_do)


def _check_centre_noise(job: Job, budget: Budget) -> None:
    """SecFC: a budget is for noise on the centres that the clients reveal; it promises less than elsewhere."""
    if budget.delta == 0:
        what_to_do = "The noise on revealed centres is Gaussian: write delta = 1e-6."
        refuse(("budget", "delta"), "be greater than 0 with the protocol secfc", show_value(budget.delta), what_to_do)
    if budget.unit is not Unit.RECORD:
        refuse(("budget", "unit"), 'be "record" for secfc', show_value(budget.unit.value))
    if job.ledger is not None:
        what_to_do = "Its noise protects a record's value where all labels stay the same: no cost of adding a record."
        refuse(("ledger",), "be left out with the protocol secfc", "a ledger", what_to_do)


def _check_lloyd_noise(budget: Budget, protocol: ProtocolOptions) -> None:
    """Refuse unknown noise, and a unit or an assignment whose sensitivity is not bounded."""
    if protocol.noise is not None:
        check_choice(("protocol", "noise"), protocol.noise, NOISES)
    if budget.unit is not Unit.RECORD:
        what_to_do = "One client's sums are not bounded there: use synopsis, which hides a whole client."
        refuse(("budget", "unit"), f'be "record" for {protocol.name}', show_value(budget.unit.value), what_to_do)
    if protocol.name != FASTLLOYD and (protocol.assignment or ASSIGNMENT) != ASSIGNMENT:
        what_to_do = "Under size constraints one record can move others, so the sensitivity would not hold."
        got = show_value(protocol.assignment)
        refuse(("protocol", "assignment"), f'be "{ASSIGNMENT}" for {protocol.name}', got, what_to_do)
    if protocol.norm_bound is not None and check_number(("protocol", "norm_bound"), protocol.norm_bound) <= 0:
        refuse(("protocol", "norm_bound"), "be greater than 0", show_value(protocol.norm_bound))


def _check_placement(protocol: ProtocolOptions, parties: int, delta: float) -> None:
    """Refuse shares of noise that dropouts or colluding parties would leave too small."""
    if protocol.placement is not None:
        known = PLACEMENTS[:-1] if protocol.name in (SYNOPSIS, FEDDP) else PLACEMENTS
        check_choice(("protocol", "placement"), protocol.placement, known)
    if protocol.placement == "joint" and resolve_noise(protocol) != "laplace":
        what_to_do = 'Its binary digits can be sampled jointly; write noise = "laplace".'
        refuse(("protocol", "placement"), 'come with noise = "laplace"', '"joint" with Gaussian noise', what_to_do)
    if protocol.placement == "joint" and delta == 0:
        what_to_do = "Its law is within 2^-80 of the stated one, and delta pays for that: write delta = 1e-6."
        refuse(("budget", "delta"), "be greater than 0 with joint noise", "0", what_to_do)
    given = [key for key in ("colluding_max", "honest_fraction") if getattr(protocol, key) is not None]
    if protocol.placement != "shared":
        for key in given:
            got = show_value(protocol.placement or "aggregator")
            refuse(("protocol", key), 'come with placement = "shared"', got, "Remove it.")
        return
    path: KeyPath = ("protocol", "colluding_max")
    if not given:
        refuse(path, 'be given with placement = "shared"', "none", "Each party knows its own share: write at least 1.")
    if len(given) > 1:
        refuse(path, "be left out with honest_fraction", "both", "They say the same: remove one.")
    if protocol.honest_fraction is not None:
        path = ("protocol", "honest_fraction")
        if not 0 < check_number(path, protocol.honest_fraction) < 1:
            what_to_do = "It is a part of the parties: 0.5 is half of them."
            refuse(path, "be greater than 0 and less than 1", show_value(protocol.honest_fraction), what_to_do)
    else:
        check_integer(path, protocol.colluding_max, 1, parties - 1)
    colluding = protocol.resolve_colluding_max(parties) or 0
    if colluding < 1:
        must = f"leave at least one of {parties} parties that may collude"
        refuse(
            path, must, show_value(protocol.honest_fraction), "Each party knows its own share: choose a smaller part."
        )
    least = parties - colluding + 1  # a party knows its own share: so many leave enough that it does not
    if protocol.resolve_min_parties(parties) < least:
        must = f"be at least {least}: with fewer, one party's own share would leave less noise than promised"
        refuse(("protocol", "min_parties"), must, f"{protocol.min_parties} of {parties} parties")
