"""The privacy card of k-FED, which has no privacy: for whoever looks for one beside its numbers."""

from __future__ import annotations

import math

from cloister.privacy.card import PrivacyCard
from cloister.privacy.units import Unit


def write_k_fed_card(unit: Unit) -> PrivacyCard:
    """Return k-FED's card: no noise, no release with a cost, nobody protected (Dennis, Li and Smith 2021)."""
    return PrivacyCard(
        private=False,
        unit=unit.value,
        neighbours="no promise is made about any",
        epsilon=math.inf,
        delta=0.0,
        how_composed="nothing to compose: no noise is added",
        budget_epsilon=math.inf,
        budget_delta=0.0,
        releases=(),
        who_adds_noise="Nobody.",
        who_could_subtract="There is none to subtract.",
        protects_against="Nobody is protected.",
        breaks_if="Nothing needs to be broken: the server is sent what there is to know.",
        not_promised=(
            "k-FED has no privacy: every client sends the exact means of its clusters to the server, unmasked and by "
            "name. With few records to a cluster these are records.",
        ),
        scope="Nothing in it is protected: every client sends the exact means of its clusters to the server.",
    )
