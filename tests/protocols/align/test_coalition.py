"""The stated limit of an alignment: the coordinator and one party together know who holds the record at each place."""

import numpy as np

from cloister.crypto import Stream, derive_key
from cloister.protocols.align import coordinator as coordinator_module
from cloister.protocols.align import party as party_module
from cloister.protocols.align.terms import Mode
from cloister.sessions.alignment import align_ids

IDS = {name: [f"{name}{i}".encode() for i in range(size)] for name, size in zip("abcd", (5, 7, 9, 11), strict=True)}


def test_the_coordinator_and_one_party_know_every_holder(monkeypatch):
    known = {}
    match_lists, finish = coordinator_module.match_lists, party_module.AlignParty._finish

    def spy_on_matching(*args, **options):
        known["matched"] = match_lists(*args, **options)
        return known["matched"]

    def spy_on_party(self, request, seed):
        if self._number == 1:
            known["seed"], known["session"] = seed, self._session
        return finish(self, request, seed)

    monkeypatch.setattr(coordinator_module, "match_lists", spy_on_matching)
    monkeypatch.setattr(party_module.AlignParty, "_finish", spy_on_party)
    alignments = align_ids(IDS, mode=Mode.UNION).alignments
    matched = known["matched"]
    moved = Stream(derive_key(known["seed"], known["session"], "align order")).permutation(matched.count)
    for number, name in enumerate(IDS):
        places = np.flatnonzero(alignments[name].rows >= 0)
        assert sorted(moved[matched.places[number]].tolist()) == places.tolist()
        assert sorted(matched.places[number].tolist()) != places.tolist()  # the coordinator alone does not
