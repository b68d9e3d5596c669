"""k-FED's card says that it has no privacy, wherever it is read."""

from __future__ import annotations

import io

import pytest

from cloister.privacy.units import Unit
from cloister.report.card_text import print_card
from cloister.report.layout import make_console
from papers.feddp.cards import write_k_fed_card


@pytest.mark.parametrize("unit", list(Unit))
def test_the_card_of_k_fed_promises_nothing(unit: Unit) -> None:
    card = write_k_fed_card(unit)
    assert not card.private
    assert card.is_weak
    assert not card.releases
    assert card.plain_words.startswith("This result as a whole is not differentially private.")
    assert "exact means of its clusters" in card.plain_words


def test_the_card_can_be_printed() -> None:
    text = io.StringIO()
    print_card(write_k_fed_card(Unit.RECORD), make_console(text))
    words = " ".join(text.getvalue().split())
    assert "not differentially private. Nothing in it is protected" in words
    assert "Noise: Nobody." in words
