"""One party's books: who is charged, and that rounds take no more than was paid in advance."""

import pytest

from cloister.errors import BudgetError
from cloister.privacy.accounting import Accountant
from cloister.privacy.books import Books, Prepayment, RhoPrepayment, prepay
from cloister.privacy.mechanisms import DiscreteGaussian, Release
from cloister.privacy.units import Budget, Sensitivity

NOISE = DiscreteGaussian(sigma=100.0)
BUDGET = Budget(epsilon=1.0, delta=1e-6)


def round_of(l2_squared, *, l1=None, entries=1, mechanism=NOISE):
    sensitivity = Sensitivity(l1=l2_squared if l1 is None else l1, l2_squared=l2_squared)
    return Release(name="round", mechanism=mechanism, sensitivity=sensitivity, entries=entries)


class Recorder:
    """Notes what it is charged, or refuses."""

    def __init__(self, error=None):
        self.charged = []
        self._error = error

    def charge(self, release):
        if self._error is not None:
            raise self._error
        self.charged.append(release)


def test_a_prepayment_is_drawn_down_and_not_beyond():
    prepayment = Prepayment(round_of(100, l1=20, entries=10))
    prepayment.charge(round_of(64, l1=8, entries=4))
    with pytest.raises(BudgetError, match="fit the payment"):
        prepayment.charge(round_of(49, l1=7))
    prepayment.charge(round_of(36, l1=6, entries=6))  # what was refused has taken nothing
    with pytest.raises(BudgetError, match="fit the payment"):
        prepayment.charge(round_of(1))


@pytest.mark.parametrize(
    "wrong", [round_of(25), round_of(1, entries=11), round_of(1, mechanism=DiscreteGaussian(sigma=99.0))]
)
def test_a_prepayment_refuses_more_norm_more_entries_and_other_noise(wrong):
    with pytest.raises(BudgetError, match="this is a bug"):
        Prepayment(round_of(100, l1=20, entries=10)).charge(wrong)


def test_a_prepayment_by_rho_takes_rounds_of_any_noise_and_no_more_rho_than_was_paid():
    prepayment = RhoPrepayment(round_of(100, l1=100))
    prepayment.charge(round_of(49, mechanism=DiscreteGaussian(sigma=70.0)))  # rho 49 / 2 70^2: all of it
    with pytest.raises(BudgetError, match="costs more than is left"):
        prepayment.charge(round_of(1))
    half = RhoPrepayment(round_of(100, l1=100))
    half.charge(round_of(50))
    with pytest.raises(BudgetError, match="this is a bug"):
        half.charge(round_of(51))
    half.charge(round_of(50))  # what was refused has taken nothing


def test_a_ledger_is_charged_by_the_round_unless_all_rounds_were_prepaid():
    ledger, prepayment = Recorder(), Recorder()
    Books(party="a", accountant=Accountant(BUDGET), ledger=ledger).charge(round_of(1))
    assert ledger.charged == [round_of(1)]
    Books(party="a", accountant=Accountant(BUDGET), ledger=ledger, prepayment=prepayment).charge(round_of(4))
    assert ledger.charged == [round_of(1)]
    assert prepayment.charged == [round_of(4)]


def test_the_accountant_is_always_charged_and_refuses_before_the_others_are_asked():
    ledger = Recorder()
    books = Books(party="a", accountant=Accountant(BUDGET), ledger=ledger)
    books.charge(round_of(9))
    assert books.accountant.spent().releases == (round_of(9),)
    with pytest.raises(BudgetError, match="Nothing was released"):
        books.charge(round_of(10**6))
    assert ledger.charged == [round_of(9)]


def test_a_refusal_of_the_ledger_reaches_the_caller():
    books = Books(party="a", accountant=Accountant(BUDGET), ledger=Recorder(BudgetError("the cap")))
    with pytest.raises(BudgetError, match="the cap"):
        books.charge(round_of(1))


@pytest.mark.parametrize("has_paid", [True, False])
def test_a_resumed_session_has_paid_or_pays_now(has_paid):
    class Resumed(Recorder):
        def resume(self, releases, *, has_journal):
            assert has_journal
            return has_paid

        def charge_all(self, releases):
            self.charged += releases

    books = Books(party="a", accountant=Accountant(BUDGET), ledger=Resumed())
    prepay([books], [round_of(4)], resumed=True)
    assert books.ledger.charged == ([] if has_paid else [round_of(4)])
