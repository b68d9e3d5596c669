"""What a party is told of its ledger when its run ends early: nothing that may be untrue."""

import pytest
from rich.console import Console
from tests.privacy.ledger.helpers import gaussian, open_session

from cloister.cli.ledger_report import tell_if_stopped
from cloister.errors import TooFewPartiesError


def tell(ledgers, error, **options):
    console = Console(record=True, width=200)
    with pytest.raises(type(error)), tell_if_stopped(ledgers, console, also_nothing=True, **options):
        raise error
    return console.export_text()


def test_who_stops_before_a_ledger_is_open_is_told_so():
    assert "no ledger has been charged by this run" in tell({}, KeyboardInterrupt())


def test_a_run_that_went_on_may_have_been_charged_before():
    told = tell({}, KeyboardInterrupt(), goes_on=True)
    assert "no ledger has been charged" not in told
    assert "cloister ledger show" in told


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TooFewPartiesError("it ended")])
def test_whatever_ends_a_run_what_was_charged_is_said(error, tmp_path):
    from cloister.privacy.ledger import Ledger

    with Ledger(tmp_path / "north.ledger") as ledger:
        session = open_session(ledger)
        assert "north has been charged nothing by this run" in tell({"north": session}, error)
    with Ledger(tmp_path / "north.ledger") as ledger:
        session = open_session(ledger)
        session.charge(gaussian(0.01))
        assert "north had been charged when the run stopped, and stays charged" in tell({"north": session}, error)
