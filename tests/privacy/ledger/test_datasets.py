"""Accounts belong to data sets that their owner names: no table is a new account, and units do not mix unnoticed."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.errors import BudgetError, ConfigError, LedgerError
from cloister.privacy.costs import epsilon_of_rho, rho_of
from cloister.privacy.ledger import Ledger, fingerprint_label, fingerprint_records
from cloister.privacy.ledger.cost import Cost
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, Release
from cloister.privacy.privacy_loss import gaussian_cost_of
from cloister.privacy.units import Budget, Sensitivity, Unit
from tests.privacy.ledger.helpers import BUDGET, CUSTOMERS, PATIENTS, gaussian, laplace, open_session

CAP = Budget(epsilon=1.0, delta=1e-6)
OLD = Path(__file__).parent / "fixtures" / "version1.ledger"
UNITS = [Unit.RECORD, Unit.PERSON, Unit.CLIENT]


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "north.ledger") as opened:
        yield opened


def of(unit):
    return Budget(epsilon=50.0, delta=1e-6, unit=unit)


class TestCapOverAll:
    def test_it_bounds_all_data_sets_together(self, ledger):
        ledger.set_cap(None, CAP, reason="test")
        open_session(ledger, PATIENTS).charge(gaussian(0.013))
        with pytest.raises(BudgetError, match="all data sets of this ledger must cost at most epsilon = 1 "):
            open_session(ledger, CUSTOMERS).charge(gaussian(0.013))
        assert ledger.summarise_one(None).rho == pytest.approx(0.013)
        open_session(ledger, CUSTOMERS).charge(gaussian(0.005))

    def test_it_stands_beside_those_of_each(self, ledger):
        ledger.set_cap(None, CAP, reason="test")
        ledger.set_cap(PATIENTS, Budget(epsilon=0.5, delta=1e-6), reason="test")
        with pytest.raises(BudgetError, match="data set 'patients' must"):
            open_session(ledger, PATIENTS).charge(gaussian(0.013))
        open_session(ledger, CUSTOMERS).charge(gaussian(0.013))

    def test_holds_count_for_it(self, ledger):
        ledger.set_cap(None, CAP, reason="test")
        open_session(ledger, PATIENTS).hold([gaussian(0.013)], what="a search")
        with pytest.raises(BudgetError, match="all data sets"):
            open_session(ledger, CUSTOMERS).hold([gaussian(0.013)], what="another")


class TestNames:
    def test_a_refusal_is_the_same_for_any_table(self, ledger):
        """It must not tell whether the table is bit for bit that of an earlier job."""
        ledger.set_cap(PATIENTS, CAP, reason="test")
        open_session(ledger, fingerprint="ab" * 32).charge(gaussian(0.015))
        told = set()
        for fingerprint in ("ab" * 32, "cd" * 32, None):
            with pytest.raises(BudgetError) as refused:
                open_session(ledger, session=b"2", fingerprint=fingerprint).charge(gaussian(0.015))
            told.add(str(refused.value))
        assert len(told) == 1

    def test_its_owner_is_warned_and_nothing_else_happens(self, ledger):
        open_session(ledger, fingerprint="ab" * 32).charge(gaussian(0.01))
        assert open_session(ledger, fingerprint="ab" * 32).warnings == ()
        (other,) = open_session(ledger, fingerprint="cd" * 32).warnings
        assert "is not the one that was charged as data set 'patients' before" in other
        (equal,) = open_session(ledger, CUSTOMERS, fingerprint="ab" * 32).warnings
        assert "was charged before as data set 'patients'" in equal
        assert open_session(ledger, CUSTOMERS, fingerprint="cd" * 32).warnings == ()
        open_session(ledger, CUSTOMERS, fingerprint="ab" * 32).charge(gaussian(0.01))
        assert ledger.summarise_one(PATIENTS).rho == pytest.approx(0.01)

    def test_no_entry_and_no_export_depends_on_a_record(self, ledger):
        open_session(ledger, fingerprint="ab" * 32).charge(gaussian(0.01))
        assert "abab" not in "".join(ledger.export())

    def test_two_names_of_one_data_set_can_be_joined(self, ledger):
        ledger.set_cap(PATIENTS, CAP, reason="test")
        ledger.set_cap(CUSTOMERS, BUDGET, reason="test")
        for name in (PATIENTS, CUSTOMERS):
            session = open_session(ledger, name, session=name.encode())
            session.charge(gaussian(0.008))
            held = session.hold([gaussian(0.002)], what="a search")
        ledger.join(CUSTOMERS, PATIENTS, reason="the same people")
        for name in (PATIENTS, CUSTOMERS):
            assert ledger.summarise_one(name).rho == pytest.approx(0.02)
            assert ledger.find_cap(name) == CAP
            with pytest.raises(BudgetError, match="data set 'patients' must"):
                open_session(ledger, name, session=b"later").charge(gaussian(0.01))
        open_session(ledger, CUSTOMERS).settle(held, [])
        assert ledger.summarise_one(None).rho == pytest.approx(0.018)
        with Ledger(ledger.path) as again:
            assert again.summarise() == ledger.summarise()
        with pytest.raises(ConfigError, match="one data set already"):
            ledger.join(PATIENTS, CUSTOMERS, reason="again")
        with pytest.raises(ConfigError, match="'nobody' is not"):
            ledger.join("nobody", PATIENTS, reason="a typo")
        with pytest.raises(ConfigError, match="reason"):
            ledger.join(CUSTOMERS, PATIENTS, reason="")


class TestUnits:
    @pytest.mark.parametrize("own", UNITS)
    @pytest.mark.parametrize("other", UNITS)
    def test_what_is_smaller_costs_more_and_what_is_larger_has_no_bound(self, own, other):
        cost = Cost(rho=0.01, pure_epsilon=0.1, mu_squared=0.02, ripple=1e-19)
        counted = cost.count_for(own, other)
        if own is other:
            assert counted == cost
        elif UNITS.index(other) < UNITS.index(own):
            assert counted == Cost(rho=0.04, pure_epsilon=0.2, mu_squared=0.08, ripple=2e-19)
        else:
            assert counted == Cost(rho=math.inf, pure_epsilon=math.inf, mu_squared=math.inf, ripple=math.inf)

    @pytest.mark.parametrize(
        ("charged", "capped"),
        [(Unit.RECORD, Unit.PERSON), (Unit.RECORD, Unit.CLIENT), (Unit.PERSON, Unit.CLIENT)],
    )
    def test_charges_for_less_under_a_cap_for_more_are_refused(self, ledger, charged, capped):
        for dataset in (PATIENTS, None):
            with Ledger(ledger.path.with_name(f"{dataset}.ledger")) as one:
                one.set_cap(dataset, Budget(epsilon=9.0, delta=1e-6, unit=capped), reason="test")
                said = f"for one {capped.value}; spent 0, asked inf .* must protect one {capped.value}, not less"
                with pytest.raises(BudgetError, match=said):
                    open_session(one, budget=of(charged)).charge(gaussian(1e-9))
                with pytest.raises(BudgetError, match="asked inf"):
                    open_session(one, budget=of(charged)).hold([gaussian(1e-9)], what="a search")

    def test_what_was_charged_for_less_before_the_cap_stays_unbounded(self, ledger):
        open_session(ledger).charge(gaussian(1e-6))
        ledger.set_cap(PATIENTS, Budget(epsilon=9.0, delta=1e-6, unit=Unit.PERSON), reason="test")
        assert math.isinf(ledger.summarise_one(PATIENTS).epsilon)
        with pytest.raises(BudgetError, match="spent inf"):
            open_session(ledger, budget=of(Unit.PERSON)).charge(gaussian(1e-9))

    def test_a_total_is_stated_for_the_smallest_unit_that_was_charged(self, ledger):
        open_session(ledger, budget=of(Unit.CLIENT)).charge(gaussian(0.01))
        assert ledger.summarise_one(PATIENTS).unit is Unit.CLIENT
        open_session(ledger, budget=of(Unit.PERSON)).charge(gaussian(0.01))
        summary = ledger.summarise_one(PATIENTS)
        assert (summary.unit, summary.rho) == (Unit.PERSON, pytest.approx(0.05))

    @given(st.integers(1, 40), st.integers(1, 40), st.floats(1.0, 50.0))
    def test_a_record_of_a_persons_is_two_steps_of_persons(self, with_it, without, sigma):
        """Exactly, for the discrete Gaussian: the distance between the two is at most the sum of both steps'."""
        step = max(with_it, without) ** 2
        one = Cost.of(
            Release(
                name="sum",
                mechanism=DiscreteGaussian(sigma=sigma),
                sensitivity=Sensitivity(l1=max(with_it, without), l2_squared=step),
                entries=1,
            )
        )
        apart = (with_it + without) ** 2 / (2 * sigma * sigma)
        assert one.count_for(Unit.PERSON, Unit.RECORD).rho >= apart


class TestMuSquared:
    def test_gaussian_noise_has_one_and_a_mixture_has_none(self, ledger):
        session = open_session(ledger)
        session.charge(gaussian(0.01))
        session.charge(gaussian(0.02))
        assert ledger.summarise_one(PATIENTS).mu_squared == pytest.approx(0.06, rel=1e-3)
        session.charge(laplace(0.1))
        summary = ledger.summarise_one(PATIENTS)
        assert summary.mu_squared is None
        assert summary.epsilon == pytest.approx(epsilon_of_rho(0.03 + rho_of(laplace(0.1)), 1e-6), rel=1e-9)

    @pytest.mark.parametrize(
        ("mechanism", "has_one"),
        [
            (DiscreteGaussian(sigma=50.0), True),
            (DiscreteGaussianSum(sigma=20.0, shares=4), True),
            (DiscreteGaussian(sigma=0.5), False),  # too coarse for the theorem
            (DiscreteLaplace(scale=50.0), False),
        ],
    )
    def test_it_is_that_of_the_theorem_and_never_less_than_rho_says(self, ledger, mechanism, has_one):
        event = Release(name="x", mechanism=mechanism, sensitivity=Sensitivity(l1=3, l2_squared=5), entries=2)
        open_session(ledger).charge(event)
        entry = json.loads(list(ledger.export())[1])["entry"]
        assert (entry["mu_squared"] is not None) == (entry["ripple"] is not None) == has_one
        if has_one:
            shift = gaussian_cost_of([event])
            assert (entry["mu_squared"], entry["ripple"]) == (shift.mu_squared, shift.ripple)
            if isinstance(mechanism, DiscreteGaussian):
                assert entry["rho"] <= entry["mu_squared"] / 2 <= 1.01 * entry["rho"]

    def test_no_cap_is_decided_by_it(self, ledger):
        """The Gaussian curve would allow more; it is not proved here for charges that are chosen one by one."""
        ledger.set_cap(PATIENTS, CAP, reason="test")
        with pytest.raises(BudgetError):
            open_session(ledger).charge(gaussian(0.0246))


class TestHolds:
    def test_a_hold_counts_as_spent_until_it_is_settled(self, ledger):
        ledger.set_cap(PATIENTS, CAP, reason="test")
        session = open_session(ledger)
        held = session.hold([gaussian(0.01), gaussian(0.01)], what="a search for k")
        assert session.spent().rho == pytest.approx(0.02)
        with pytest.raises(BudgetError, match="spent"):
            open_session(ledger, session=b"2").charge(gaussian(0.01))
        session.settle(held, [gaussian(0.01)])
        assert session.spent().rho == pytest.approx(0.01)
        summary = ledger.summarise_one(PATIENTS)
        assert (summary.charges, summary.held, summary.rho) == (1, 0, pytest.approx(0.01))
        open_session(ledger, session=b"2").charge(gaussian(0.01))

    def test_work_that_released_nothing_costs_nothing(self, ledger):
        session = open_session(ledger)
        session.settle(session.hold([gaussian(0.01), laplace(1)], what="a search"), [])
        assert ledger.summarise_one(PATIENTS).epsilon == 0
        assert ledger.summarise_one(PATIENTS).charges == 0

    def test_a_hold_that_is_never_settled_stays_spent(self, ledger):
        open_session(ledger).hold([gaussian(0.01)], what="a search")
        with Ledger(ledger.path) as again:
            assert again.summarise_one(PATIENTS).rho == pytest.approx(0.01)
            assert again.summarise_one(PATIENTS).held == 1

    @pytest.mark.parametrize("more", [[gaussian(0.011)], [laplace(0.01), gaussian(0.01)], [gaussian(0.005)] * 3])
    def test_more_than_was_held_is_refused_and_the_hold_stays(self, ledger, more):
        session = open_session(ledger)
        held = session.hold([gaussian(0.01)], what="a search")
        with pytest.raises(BudgetError, match="the whole hold stays spent"):
            session.settle(held, more)
        assert session.spent().rho == pytest.approx(0.01)

    def test_a_pure_hold_is_not_settled_by_noise_that_is_not_pure(self, ledger):
        session = open_session(ledger)
        held = session.hold([laplace(1.0)], what="a search")
        with pytest.raises(BudgetError):
            session.settle(held, [gaussian(1e-6)])

    def test_a_hold_is_settled_once_and_by_its_own_data_set(self, ledger):
        session = open_session(ledger)
        held = session.hold([gaussian(0.01)], what="a search")
        with pytest.raises(ConfigError, match=f"number {held} is not"):
            open_session(ledger, CUSTOMERS).settle(held, [])
        session.settle(held, [gaussian(0.01)])
        with pytest.raises(ConfigError, match="a hold must be open"):
            session.settle(held, [])
        with pytest.raises(ConfigError, match="a hold must be open"):
            session.settle(99, [])
        assert ledger.summarise_one(None).rho == pytest.approx(0.01)

    def test_settling_without_the_check_is_noticed_when_it_is_read(self, ledger, monkeypatch):
        session = open_session(ledger)
        held = session.hold([gaussian(0.01)], what="a search")
        monkeypatch.setattr("cloister.privacy.ledger.accounts.Accounts.check_settlement", lambda *arguments: None)
        session.settle(held, [gaussian(0.02)])
        with pytest.raises(LedgerError, match="must settle an open hold within its cost"):
            Ledger(ledger.path)


class TestSeeded:
    def test_it_is_noted_once_and_costs_nothing(self, ledger):
        session = open_session(ledger, seeded=True)
        session.check_all([gaussian(0.01)])
        session.charge_all([gaussian(0.01)])
        session.charge(gaussian(0.01))
        session.charge(gaussian(0.02))
        summary = ledger.summarise_one(PATIENTS)
        assert (summary.seeded, summary.charges, summary.epsilon, summary.rho) == (1, 0, 0.0, 0.0)
        assert "not private" in list(ledger.export())[-1]

    @pytest.mark.parametrize("dataset", [PATIENTS, None])
    def test_it_is_refused_where_there_is_a_cap(self, ledger, dataset):
        ledger.set_cap(dataset, CAP, reason="test")
        session = open_session(ledger, seeded=True)
        for pay in (session.check_all, session.charge_all, lambda releases: session.charge(releases[0])):
            with pytest.raises(BudgetError, match="must take its noise from the operating system; got a seed"):
                pay([gaussian(1e-9)])
        assert ledger.verify().number == 1


def test_a_statement_says_what_was_spent_before_and_now_and_what_again_would_make_it(ledger):
    budget = Budget(epsilon=2.0, delta=1e-6)
    open_session(ledger).charge(gaussian(0.01))
    session = open_session(ledger, session=b"2", budget=budget)
    session.charge_all([gaussian(0.02)])
    state = session.state()
    expected = [epsilon_of_rho(rho, 1e-6) for rho in (0.01, 0.03, 0.05)]
    assert [state.before, state.after, state.again] == pytest.approx(expected, rel=1e-6)
    assert (state.dataset, state.unit, state.cap, state.cap_of_all) == (PATIENTS, Unit.RECORD, None, None)


class TestMigration:
    """A ledger that was made by the code of schema 1, on 19 November 2026."""

    SALT = "8a0159b2ddef19c11d353a318df6b75495276293dde9777e41b7f0809feb8ef5"
    HEAD = "1b3fd8fa184b078abc54cf0019f98a69a483e955868854fd91b4ecce43882ccc"
    TABLE = np.arange(12.0).reshape(6, 2)

    @pytest.fixture
    def old(self, tmp_path):
        shutil.copyfile(OLD, tmp_path / "old.ledger")
        with Ledger(tmp_path / "old.ledger", create=False) as opened:
            yield opened

    def test_it_says_what_it_said(self, old):
        assert old.salt.hex() == self.SALT
        assert (old.verify(head=self.HEAD).number, old.verify().chain) == (7, self.HEAD)
        named, table = old.summarise()
        assert named.dataset == fingerprint_label(PATIENTS, salt=old.salt)
        assert (named.epsilon, named.rho, named.charges) == (1.2145399721538017, 0.03499583749578813, 4)
        assert (named.cap, named.sessions, named.jobs) == (Budget(epsilon=2.0, delta=1e-6), 2, ("blood", "age"))
        assert (table.epsilon, table.rho, table.unit) == (1.4715947520040171, 0.05000000000000018, Unit.CLIENT)
        assert old.summarise_one(None).rho == pytest.approx(named.rho + 4 * table.rho)

    def test_a_name_meets_what_was_charged_under_it(self, old):
        assert old.find_cap(PATIENTS) == Budget(epsilon=2.0, delta=1e-6)
        assert old.total(PATIENTS, Unit.RECORD).rho == 0.03499583749578813
        with pytest.raises(BudgetError, match=r"spent 1\.21454"):
            open_session(old).charge(gaussian(0.08))
        open_session(old).charge(gaussian(0.001))
        assert old.summarise()[0].dataset == PATIENTS
        assert old.summarise_one(PATIENTS).charges == 5

    def test_a_table_that_was_known_by_its_content_is_warned_of_and_can_be_joined(self, old):
        fingerprint = fingerprint_records([self.TABLE], salt=old.salt)
        (warning,) = open_session(old, CUSTOMERS, fingerprint=fingerprint).warnings
        assert f"was charged before as data set {fingerprint[:16]!r}" in warning
        old.join(fingerprint[:16], CUSTOMERS, reason="the baskets")
        assert old.summarise_one(CUSTOMERS).charges == 2
        assert [one.dataset for one in old.summarise()][-1] == CUSTOMERS
        assert open_session(old, CUSTOMERS, fingerprint=fingerprint).warnings == ()

    def test_it_stays_migrated_and_its_damage_is_noticed_before(self, old, tmp_path):
        old.close()
        with Ledger(old.path, create=False) as again:
            assert again.verify().number == 7
        content = OLD.read_bytes()
        for needle in (b"round 1", b"blood", bytes.fromhex(self.SALT), b"entry_grows"):
            at = content.index(needle)
            old.path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            with pytest.raises(LedgerError):
                Ledger(old.path, create=False)

    def test_it_waits_for_programs_that_have_it_open(self, tmp_path, monkeypatch):
        """They know nothing of the head, and would write behind it."""
        monkeypatch.setattr("cloister.privacy.ledger.schema.BUSY_TIMEOUT_S", 0.1)
        path = tmp_path / "[old] *.ledger"
        shutil.copyfile(OLD, path)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as running:
            assert running.execute("SELECT count(*) FROM entry").fetchone() == (7,)
            with pytest.raises(LedgerError, match="another process holds it"):
                Ledger(path, create=False)
            assert running.execute("PRAGMA user_version").fetchone() == (1,)
        with Ledger(path, create=False) as ledger:
            assert ledger.verify().number == 7

    def test_a_file_of_today_is_not_migrated_again(self, ledger):
        open_session(ledger).charge(gaussian(0.01))
        ledger.close()
        with sqlite3.connect(ledger.path) as connection:
            connection.execute("PRAGMA user_version = 1")
        connection.close()
        with pytest.raises(LedgerError, match="schema 1 must have its tables"):
            Ledger(ledger.path)
