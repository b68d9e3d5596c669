"""The account of one data set, entry by entry: what it adds up to, whose jobs, since when."""

from __future__ import annotations

import pytest

from cloister.errors import BudgetError, LedgerError
from cloister.privacy.ledger.account import Account
from cloister.privacy.ledger.entries import Cap, Charge, Hold, Note, Settle
from cloister.privacy.units import Unit


def charge(time, rho, *, job="a", session="01", unit=Unit.RECORD):
    return Charge(
        time=time,
        data="patients",
        unit=unit,
        job=job,
        session=session,
        release="sums",
        mechanism="gaussian",
        parameters={},
        sensitivity_l1=1,
        sensitivity_l2_squared=1,
        entries=1,
        rho=rho,
        **COSTS,
    )


def hold(time, rho, *, job="b", session="02", unit=Unit.RECORD):
    return Hold(time=time, data="patients", unit=unit, job=job, session=session, what="a search", rho=rho, **COSTS)


def settle(time, number, rho, releases):
    return Settle(time=time, data="patients", hold=number, releases=releases, rho=rho, **COSTS)


COSTS = {"epsilon": None, "mu_squared": None, "ripple": None}


def record(*entries):
    account = Account(name="patients")
    for number, entry in enumerate(entries, start=1):
        account.record(number, entry)
    return account


def test_what_happened_is_told_in_order():
    account = record(
        charge("2026-01-02", 0.1),
        hold("2026-01-03", 0.4),
        charge("2026-01-04", 0.2, job="c", session="03"),
        Note(time="2026-02-01", data="patients", job="seeded", session="04", text="a seed"),
    )
    seen = account.summarise(1e-6)
    assert (seen.first, seen.last) == ("2026-01-02", "2026-01-04")
    assert seen.jobs == ("a", "b", "c")
    assert (seen.charges, seen.sessions, seen.held, seen.seeded) == (2, 3, 1, 1)
    assert seen.rho == pytest.approx(0.7)
    account.record(5, settle("2026-03-01", 2, 0.3, 7))
    seen = account.summarise(1e-6)
    assert (seen.first, seen.last, seen.charges, seen.held) == ("2026-01-02", "2026-03-01", 9, 0)
    assert seen.rho == pytest.approx(0.6)
    assert seen.jobs == ("a", "b", "c")
    assert account.spent_by("02", Unit.RECORD).rho == pytest.approx(0.3)
    assert account.spent_by("02", Unit.CLIENT).rho == 0


def test_nothing_is_settled_twice_nor_for_more():
    account = record(hold("2026-01-01", 0.4))
    for wrong in (settle("2026-01-02", 2, 0.1, 1), settle("2026-01-02", 1, 0.5, 1)):
        with pytest.raises(LedgerError, match="must settle an open hold within its cost"):
            record(hold("2026-01-01", 0.4)).record(2, wrong)
    account.record(2, settle("2026-01-02", 1, 0.4, 1))
    with pytest.raises(LedgerError, match="must settle"):
        account.record(3, settle("2026-01-02", 1, 0.0, 0))


def test_two_accounts_of_one_data_set_become_one():
    """Whichever is older; a cap of one is the cap of both."""
    one = record(charge("2026-01-05", 0.1), hold("2026-01-06", 0.2))
    other = record(
        charge("2026-01-01", 0.3, job="c", session="03"),
        charge("2026-02-01", 0.4, job="a", session="01"),
        Note(time="2026-02-02", data="patients", job="seeded", session="04", text="a seed"),
    )
    other.cap = Cap(time="", data="patients", unit=Unit.RECORD, epsilon=50.0, delta=1e-6, reason="test")
    holds = other.open
    one.absorb(other)
    seen = one.summarise(1e-6)
    assert (seen.first, seen.last) == ("2026-01-01", "2026-02-01")
    assert (seen.charges, seen.sessions, seen.held, seen.seeded) == (3, 3, 1, 1)
    assert set(seen.jobs) == {"a", "b", "c"}
    assert seen.rho == pytest.approx(1.0)
    assert one.cap is other.cap
    assert one.spent_by("01", Unit.RECORD).rho == pytest.approx(0.5)
    assert not holds
    fresh = Account(name="new")
    fresh.absorb(Account(name="old"))
    assert (fresh.first, fresh.last, fresh.cap) == (None, None, None)
    late = record(charge("2026-03-01", 0.1))
    late.absorb(record(charge("2026-02-01", 0.1)))
    assert (late.first, late.last) == ("2026-02-01", "2026-03-01")


def test_without_a_cap_the_total_is_for_the_coarsest_unit_that_was_charged():
    assert record().unit is Unit.RECORD
    assert record(charge("t", 0.1, unit=Unit.CLIENT)).unit is Unit.CLIENT
    assert record(hold("t", 0.1, unit=Unit.PERSON)).unit is Unit.PERSON


def test_a_cap_counts_what_is_held_and_asked_together():
    account = record(charge("t", 0.01), hold("t", 0.01))
    account.check_cap([charge("t", 1e9)])
    account.cap = Cap(time="", data="patients", unit=Unit.RECORD, epsilon=1.1, delta=1e-6, reason="test")
    fits = [charge("t", 0.002), charge("t", 0.002)]
    account.check_cap(fits)
    with pytest.raises(
        BudgetError, match=r"data set .patients. must cost at most epsilon = 1\.1 .*asked .* for 3 more"
    ):
        account.check_cap([*fits, charge("t", 0.02)])
