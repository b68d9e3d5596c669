"""Roles that go on from their journals in the middle of a sum, and meet another attempt, late openings and restoring.

The coordinator is played by hand, and honest or not.
"""

import shutil

import numpy as np
import pytest

from cloister.aggregation import pack_members
from cloister.aggregation.messages import OpenTotal, RestoreMasks
from cloister.errors import JournalError, RemoteProtocolError
from cloister.privacy.samplers import ExactSampler
from cloister.protocols.multiparty_lloyd.messages import CODEC, MaskedRound
from cloister.runtime.resuming import Memory
from tests.golden.tables import write_tables
from tests.runtime.casts import Cast
from tests.runtime.jobs import JOBS, make_job

ALL = pack_members((1, 2, 3), 3)
FOUR = (
    make_job('name = "masked-sum-count"\niterations = 3\nmasks = "double"\nmin_parties = 3')
    + '[[parties]]\nname = "west"\ndata = "west.csv"\n'
)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "tables"
    made.mkdir()
    write_tables(made)
    shutil.copy(made / "north.csv", made / "west.csv")
    (tmp_path / "journals").mkdir()
    return made


def open_cast(folder, text, monkeypatch):
    monkeypatch.setitem(JOBS, "this", text)
    return Cast(folder, folder.parent / "journals", "this", seed=None)


def play(cast, until, silent=lambda party, request: False):
    """Go on until a request of a kind is asked for; whoever is silent does not even get its request."""
    while not cast.endpoint(0).finished:
        asked = cast.endpoint(0).ask.requests
        if until(asked):
            return asked
        for party, frame in cast.endpoint(0).frames().items():
            if not silent(party, asked[party]):
                cast.endpoint(0).receive(party, cast.endpoint(party).receive(frame))
        cast.endpoint(0).close_step()
    return {}


def first_of(kind, round_=1):
    return lambda asked: all(isinstance(one, kind) and one.attempt.round == round_ for one in asked.values())


def tell(cast, party, request, step):
    """What a party answers a coordinator that asks what it likes."""
    frame = CODEC.encode(request, session=cast.endpoint(party)._session, step=step, sender=0)
    return cast.endpoint(party).receive(frame), frame


def vector_of(cast, party):
    return cast.endpoint(party)._party._introduction.masks._entered.vector


def test_a_party_that_comes_back_meets_another_attempt_with_the_vector_that_it_has_paid_for(folder, monkeypatch):
    """One draw and one charge, whatever is asked again; other masks; and one attempt is opened."""
    drawn = []
    real = ExactSampler.draw
    monkeypatch.setattr(ExactSampler, "draw", lambda self, *args: drawn.append(1) or real(self, *args))
    cast = open_cast(folder, JOBS["mask-noise-average"], monkeypatch)
    first = play(cast, first_of(MaskedRound))[1]
    assert first.attempt.members == ALL
    second = MaskedRound(type(first.attempt)(1, 2, ALL), ())
    answer, frame = tell(cast, 1, first, 50)
    vector = vector_of(cast, 1)
    cast.kill(1)
    assert cast.endpoint(1).receive(frame) == answer
    assert np.array_equal(vector_of(cast, 1), vector)
    other, later = tell(cast, 1, second, 51)
    assert np.array_equal(vector_of(cast, 1), vector)
    assert other != answer
    cast.kill(1)
    assert cast.endpoint(1).receive(later) == other
    refused = [first, second, OpenTotal(first.attempt, bytes(32))]
    for step, request in enumerate(refused, start=52):
        with pytest.raises(RemoteProtocolError):
            tell(cast, 1, request, step)
    opening, asked = tell(cast, 1, OpenTotal(second.attempt, bytes(32)), 60)
    cast.kill(1)
    assert cast.endpoint(1).receive(asked) == opening
    third = MaskedRound(type(first.attempt)(1, 3, ALL), ())
    for step, request in enumerate([*refused, third, OpenTotal(second.attempt, bytes([1] * 32))], start=61):
        with pytest.raises(RemoteProtocolError):
            tell(cast, 1, request, step)
    assert len(drawn) == 1
    assert vector_of(cast, 1) is not None


def test_who_comes_back_after_its_mask_was_restored_goes_on_with_the_others(folder, monkeypatch):
    """It may open late, which shows nothing more; whoever restored does so once, also after a kill."""
    cast = open_cast(folder, FOUR, monkeypatch)
    opening = play(cast, first_of(OpenTotal))
    cast.kill(4)
    restoring = play(cast, first_of(RestoreMasks), silent=lambda party, request: party == 4)
    assert sorted(restoring) == [1, 2, 3]
    frames = cast.endpoint(0).frames()
    reply = cast.endpoint(1).receive(frames[1])
    cast.kill(1)
    assert cast.endpoint(1).receive(frames[1]) == reply
    with pytest.raises(RemoteProtocolError, match="must be opened; it came out of turn"):
        tell(cast, 1, restoring[1], 90)
    late, _ = tell(cast, 4, opening[4], cast.endpoint(0).step)
    assert late
    cast.kill(4)
    play(cast, first_of(MaskedRound, 2))
    cast.kill(0)
    assert not play(cast, lambda asked: False)
    found = [cast.endpoint(party)._party for party in (1, 2, 3, 4)]
    assert all(party.finished for party in found)
    assert len({party.centres.tobytes() for party in found}) == 1
    assert cast.endpoint(0).result.members == ((1, 2, 3, 4),) * 3


# --- what a journal cannot notice -------------------------------------------------------------------------------------


def test_a_journal_that_is_gone_leaves_a_party_that_answers_nothing_in_this_session(folder, monkeypatch):
    cast = open_cast(folder, JOBS["mask-noise-average"], monkeypatch)
    request = play(cast, first_of(MaskedRound))[1]
    (folder.parent / "journals" / "1").unlink()
    identity = cast.opened[1].identity
    with pytest.raises(AssertionError):  # it has another identity, as its keys were in the journal
        cast.kill(1)
    assert cast.opened[1].identity != identity
    cast.roles[1] = cast.opened[1].seat(cast.directory)
    with pytest.raises(RemoteProtocolError, match="a session opens with OpenSession"):
        tell(cast, 1, request, 50)


def test_a_journal_that_was_set_back_with_its_disk_draws_a_second_time(folder, monkeypatch):
    """The stated limit (SECURITY.md): only something that is not set back could tell. The keys are those of before."""
    cast = open_cast(folder, JOBS["mask-noise-average"], monkeypatch)
    request = play(cast, first_of(MaskedRound))[1]
    path = folder.parent / "journals" / "1"
    before = path.read_bytes()
    answer, frame = tell(cast, 1, request, 50)
    one = vector_of(cast, 1)
    path.write_bytes(before)
    cast.kill(1)
    again = cast.endpoint(1).receive(frame)
    other = vector_of(cast, 1)
    assert not np.array_equal(one, other)
    words = [
        np.frombuffer(CODEC.reply(CODEC.open(raw, session=cast.endpoint(1)._session, sender=1).body).vector, one.dtype)
        for raw in (answer, again)
    ]
    assert np.array_equal((words[0] - words[1])[: len(one)], one - other)  # the masks are the same: two noises differ
    third = MaskedRound(type(request.attempt)(1, 2, ALL), ())
    tell(cast, 1, third, 51)
    assert np.array_equal(vector_of(cast, 1), other)


def test_a_set_back_journal_makes_no_key_for_another_message(tmp_path):
    """Else two boxes would be sealed under one key."""
    memory = Memory(tmp_path / "journal", key=bytes(32), session=b"s")
    entropy, path = memory.make_entropy("party 1"), tmp_path / "journal"
    before = path.read_bytes()
    memory.begin(1, {0: b"asked"})
    first = entropy.bytes(32)
    memory.finish({0: b"asked"}, b"answer")
    memory.close()
    path.write_bytes(before)
    memory = Memory(path, key=bytes(32), session=b"s")
    entropy = memory.make_entropy("party 1")
    seen = {first}
    for frame in (b"asked", b"asked otherwise"):
        memory.begin(1, {0: frame})
        seen.add(entropy.bytes(32))
    assert len(seen) == 2
    memory.close()


def test_a_journal_whose_noise_was_cut_out_is_refused(folder, monkeypatch):
    """What was charged and is not in the journal is not drawn again for the same record."""
    cast = open_cast(folder, JOBS["mask-noise-average"], monkeypatch)
    request = play(cast, first_of(MaskedRound))[1]
    tell(cast, 1, request, 50)
    real = Memory.begin
    monkeypatch.setattr(
        Memory,
        "begin",
        lambda self, number, frames, kept=None: real(
            self, number, frames, kept and type(kept)(kept.frames, (), kept.answer)
        ),
    )
    with pytest.raises(JournalError, match="does not hold the noise that this role draws"):
        cast.kill(1)
