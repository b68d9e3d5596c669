"""The least noise that a budget allows. Every answer has been charged to an `Accountant` before it is returned."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from cloister.errors import BudgetError, ConfigError
from cloister.privacy.accounting import Accountant, check_pure, do_fit
from cloister.privacy.costs import rho_of_epsilon
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Release
from cloister.privacy.units import Budget, Sensitivity

SLACK = 1 + 1e-8  # how much more noise or less epsilon is aimed at than allowed: more than any rounding afterwards
_SEARCH_RANGE = 2.0**200
_AGREED_BITS = 24


def round_for_all(derived: float) -> float:
    """Round a positive number up to 24 significant bits, so that parties that derive it agree on it.

    Scales follow from the budget through exponentials and powers, whose last bits differ from one library to another.
    Of what is rounded so, two parties find different values only if a multiple of 2^-24 lies between theirs: with
    differences of some units in the last place, one time in millions. They are refused then, before anything is paid.

    Privacy
    -------
    A scale of noise only grows, and is charged as it is: releases cost at most what they did.
    """
    fraction, exponent = math.frexp(derived)
    return math.ldexp(math.ceil(math.ldexp(fraction, _AGREED_BITS)), exponent - _AGREED_BITS)


def rho_for(budget: Budget) -> float:
    """Return the largest rho whose conversion fits the budget.

    Raises
    ------
    ConfigError
        If the budget has ``delta = 0``: no rho > 0 implies pure differential privacy.

    Privacy
    -------
    Releases that are rho-zCDP together are (epsilon, delta)-DP for the same neighbours and event (Canonne, Kamath
    and Steinke 2020, Cor. 13).
    """
    if budget.delta == 0:
        raise ConfigError("delta must be greater than 0 for Gaussian noise; got 0. Set delta, or use Laplace noise.")
    return rho_of_epsilon(budget.epsilon, budget.delta)


def calibrate_gaussian(
    budget: Budget, sensitivity_l2_squared: int, releases: int, *, fixed_plan: bool = False
) -> float:
    """Return the smallest sigma (to a relative 1e-7) at which this many discrete Gaussian releases fit the budget.

    Parameters
    ----------
    budget
        With ``delta > 0``.
    sensitivity_l2_squared
        Of each release, in the integer units of the noise.
    releases
        How many; each of the same sensitivity and with the same sigma.
    fixed_plan
        Whether the releases will be handed to `Accountant` as its plan: some 4 to 13 % less noise.

    Privacy
    -------
    Neighbours: add or remove one unit. Each release costs rho = Delta_2^2 / (2 sigma^2), so sigma^2 =
    releases Delta_2^2 / (2 rho_for(budget)). Adding up and conversion: see `Accountant`, which checks the answer.
    """
    _check_count("sensitivity_l2_squared", sensitivity_l2_squared)
    _check_count("releases", releases)
    # An integer vector has at most Delta_2^2 entries other than 0: no longer one costs more.
    sensitivity = Sensitivity(l1=sensitivity_l2_squared, l2_squared=sensitivity_l2_squared)

    def make_releases(sigma: float) -> Sequence[Release]:
        noise = DiscreteGaussian(sigma=sigma)
        return [
            Release(name="calibration", mechanism=noise, sensitivity=sensitivity, entries=sensitivity.l1)
        ] * releases

    sigma = math.sqrt(sensitivity_l2_squared) * math.sqrt(releases) / math.sqrt(2 * rho_for(budget)) * SLACK
    if fixed_plan:
        return calibrate(budget, make_releases=make_releases, start=sigma, fixed_plan=True)
    charge_all(budget, make_releases(sigma))
    return sigma


def calibrate_laplace(budget: Budget, sensitivity: Sensitivity, releases: int) -> float:
    """Return the smallest scale (to a relative 1e-7) at which this many discrete Laplace releases fit the budget.

    Parameters
    ----------
    budget
        With ``delta = 0`` the scale is releases Delta_1 / epsilon. With ``delta > 0`` many releases, or one of many
        entries, may do with less: the better of both rules of `Accountant` decides.
    sensitivity
        Of each release, in the integer units of the noise.
    releases
        How many; each of the same sensitivity and with the same scale.

    Privacy
    -------
    Neighbours: add or remove one unit. Each release is (Delta_1 / scale)-DP; composition: see `Accountant`.
    """
    _check_count("sensitivity.l1", sensitivity.l1)
    _check_count("releases", releases)

    def make_releases(scale: float) -> Sequence[Release]:
        noise = DiscreteLaplace(scale=scale)
        return [Release(name="calibration", mechanism=noise, sensitivity=sensitivity, entries=1)] * releases

    pure = releases * sensitivity.l1 / budget.epsilon * SLACK
    if budget.delta == 0:
        charge_all(budget, make_releases(pure))
        return pure
    # rho <= Delta_2^2 / (2 scale^2) always, so this scale fits as well.
    concentrated = math.sqrt(releases * sensitivity.l2_squared / (2 * rho_for(budget))) * SLACK
    return calibrate(budget, make_releases=make_releases, start=min(pure, concentrated))


def calibrate(
    budget: Budget,
    *,
    make_releases: Callable[[float], Sequence[Release]],
    start: float = 1.0,
    fixed_plan: bool = False,
) -> float:
    """Return the smallest noise multiplier (to a relative 1e-7) whose releases fit the budget together.

    Parameters
    ----------
    budget
        The target; never exceeded.
    make_releases
        Everything that will be released when noise is scaled by the multiplier. A larger multiplier must not cost
        more; if it did, the answer would still fit the budget, but might not be the smallest. Equal releases that
        follow each other are cheapest to search when they are one object.
    start
        Where the search begins.
    fixed_plan
        Whether the releases will be handed to `Accountant` as its plan.

    Raises
    ------
    BudgetError
        If no multiplier fits, as when a release's cost does not depend on it.
    ConfigError
        If every multiplier fits; or if ``delta = 0`` and a release is not pure.

    Privacy
    -------
    As `Accountant`, to which the returned multiplier's releases have been charged.
    """
    if not 0 < start < math.inf:
        raise ConfigError(f"start must be finite and greater than 0; got {start}.")
    if budget.delta == 0:
        for release in make_releases(start):
            check_pure(release)
    target = replace(budget, epsilon=budget.epsilon / SLACK)

    def fits_budget(multiplier: float) -> bool:
        return do_fit(target, make_releases(multiplier), fixed_plan=fixed_plan)

    fits = start
    while not fits_budget(fits):
        fits *= 2
        if fits > start * _SEARCH_RANGE:
            raise BudgetError(
                f"some noise must keep the releases within epsilon = {budget.epsilon:.6g}, delta = {budget.delta:.3g}; "
                "however much was tried was not enough. Make every release depend on the noise multiplier."
            )
    exceeds = fits / 2
    while fits_budget(exceeds):
        fits, exceeds = exceeds, exceeds / 2
        if exceeds < start / _SEARCH_RANGE:
            raise ConfigError("the releases must cost something; they fit the budget with almost no noise.")
    while fits > exceeds * SLACK:
        middle = math.sqrt(fits * exceeds)
        fits, exceeds = (middle, exceeds) if fits_budget(middle) else (fits, middle)
    charge_all(budget, make_releases(fits), fixed_plan=fixed_plan)
    return fits


def charge_all(budget: Budget, releases: Sequence[Release], *, fixed_plan: bool = False) -> None:
    """Charge a list of releases to a fresh accountant: raises exactly where the job itself would be refused."""
    accountant = Accountant(budget, plan=releases if fixed_plan else None)
    for release in releases:
        accountant.charge(release)


def _check_count(name: str, value: int) -> None:
    if value < 1:
        raise ConfigError(f"{name} must be at least 1; got {value}.")
