"""What a result of guided sums says of parties that missed rounds."""

from types import SimpleNamespace

import pytest

from cloister.jobfile import parse_job
from cloister.runtime import Fault, FaultKind
from tests.protocols.synopsis.sessions import counting

NAMES = ("north", "harbour", "valley", "west")
JOB = parse_job(
    """
name = "notes"
[clusters]
k = 3
[protocol]
name = "synopsis"
[budget]
epsilon = 1.0
delta = 1e-6
[columns]
x = { low = 0, high = 1 }
"""
    + "".join(f'[[parties]]\nname = "{name}"\n' for name in NAMES)
)
MISSED = "Sizes and centres are not of the same records, as parties missed some of {} rounds ({})"


def explain(*faults):
    """The notes of a session, and who was in the sum of each round."""
    session = counting(members_min=2)
    run, parties = session.run(faults=faults)
    finding = session.roles.find(session.agreed, parties[0], run.result)
    card = SimpleNamespace(releases=())
    notes = session.roles.explain(JOB, session.agreed, finding, run.result, lambda circumstances: card).notes
    return [note for note in notes if "same records" in note], run.result.members[:-1]


def first_answer():
    """The step in which the first round is answered: what has come before is known to be of every session."""
    session = counting(members_min=2)
    return session.agreement.steps - 2 * len(session.agreement.slots) - 2


@pytest.mark.parametrize("kind", [FaultKind.CRASH, FaultKind.DROP_REPLY])
def test_a_party_that_missed_some_rounds_is_named_with_how_many(kind):
    notes, sums = explain(Fault(kind, 3, first_answer() + 4), Fault(FaultKind.DROP_REPLY, 4, first_answer()))
    missed = {number: sum(number not in members for members in sums) for number in (1, 2, 3, 4)}
    assert missed == {1: 0, 2: 0, 3: len(sums) - 2 if kind is FaultKind.CRASH else 1, 4: 1}
    (note,) = notes
    assert note.startswith(MISSED.format(len(sums), f"valley {missed[3]}, west 1"))


@pytest.mark.parametrize("faults", [(), (Fault(FaultKind.CRASH, 3, 0),)])
def test_nothing_is_said_where_all_sums_are_of_the_same_parties(faults):
    notes, sums = explain(*faults)
    assert len(set(sums)) == 1
    assert notes == []
