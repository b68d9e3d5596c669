"""Mail: what one party seals the others open, in its place and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.crypto import SeededEntropy, Stream, SystemEntropy
from cloister.errors import RemoteProtocolError
from cloister.protocols.vertical import relayed
from cloister.protocols.vertical.messages import Letter, Post, Turn
from cloister.protocols.vertical.relayed import Mail
from cloister.roles import Seat
from tests.protocols.vertical.sessions import TINY, Session
from tests.protocols.vertical.tables import mixture
from tests.sessions import SESSION

SEED, SECRET = b"s" * 32, b"p" * 32


def make(number, *, session=b"session", seed=SEED, secret=SECRET):
    return Mail(
        number=number, session=session, seed=seed, secrets={other: secret for other in (1, 2, 3) if other != number}
    )


def turn(posts=(), letters=()):
    return Turn(9, (1, 2, 3), tuple(posts), tuple(letters))


@given(st.binary(max_size=200), st.integers(0, 8), st.integers(1, 3))
def test_posts_are_opened_by_all_and_letters_by_one(content, stage, reader):
    author = make(1)
    box = author.seal_post(content, stage)
    assert len(box) == len(content) + 16
    assert make(reader).open_posts(turn([Post(1, stage, box)])) == {(stage, 1): content}
    if reader != 1:
        letter = author.seal_letter(content, stage, reader)
        assert (letter.sender, letter.recipient, letter.stage) == (1, reader, stage)
        assert make(reader).open_letters(turn((), [letter])) == {(stage, 1): content}


POST = make(1).seal_post(b"content", 4)
LETTER = make(1).seal_letter(b"content", 4, 2)


@pytest.mark.parametrize(
    "posts",
    [
        [Post(2, 4, POST)],
        [Post(1, 3, POST)],
        [Post(1, 4, POST[:-1])],
        [Post(1, 4, b"")],
        [Post(1, 4, LETTER.box)],
        [Post(1, 4, bytes([POST[0] ^ 1]) + POST[1:])],
        [Post(1, 4, POST), Post(3, 4, POST)],
    ],
)
def test_a_post_of_another_place_is_refused(posts):
    with pytest.raises(RemoteProtocolError):
        make(2).open_posts(turn(posts))


@pytest.mark.parametrize(
    "letter",
    [
        Letter(3, 2, 4, LETTER.box),
        Letter(1, 2, 5, LETTER.box),
        Letter(1, 3, 4, LETTER.box),
        Letter(2, 2, 4, LETTER.box),
        Letter(9, 2, 4, LETTER.box),
        Letter(1, 2, 4, LETTER.box + b"x"),
        Letter(1, 2, 4, POST),
    ],
)
def test_a_letter_of_another_place_is_refused(letter):
    with pytest.raises(RemoteProtocolError):
        make(2).open_letters(turn((), [letter]))


def test_another_session_seed_or_secret_opens_nothing():
    with pytest.raises(RemoteProtocolError):
        make(2, session=b"other").open_posts(turn([Post(1, 4, POST)]))
    with pytest.raises(RemoteProtocolError):
        make(2, seed=b"t" * 32).open_posts(turn([Post(1, 4, POST)]))
    with pytest.raises(RemoteProtocolError):
        make(2, secret=b"q" * 32).open_letters(turn((), [LETTER]))


def test_the_same_content_has_another_box_in_every_place():
    author = make(1)
    boxes = [author.seal_post(b"same", stage) for stage in range(5)]
    boxes += [author.seal_letter(b"same", stage, to).box for stage in range(5) for to in (2, 3)]
    boxes += [make(2).seal_post(b"same", stage) for stage in range(5)]
    assert len(set(boxes)) == 20


# --- where what is secret comes from ------------------------------------------------------------------------------


def make_party(number, entropy):
    session = Session(mixture(20, 2, 2, seed=5), **TINY)
    seat = Seat(number=number, identity=session.seat(number).identity, entropy=entropy, session=SESSION)
    return session.roles.seat(session.agreed, seat, session.inputs[number - 1], duty=session.duties[number])


def test_what_a_party_draws_is_its_own_and_new_in_every_session():
    """Keys, masks, errors and floods come from this stream."""
    drawn = [make_party(number, SystemEntropy())._private.bytes(32) for number in (1, 2) for _ in range(3)]
    assert len(set(drawn)) == 6
    seeded = [make_party(number, SeededEntropy(1, f"party {number}"))._private.bytes(32) for number in (1, 2, 1)]
    assert seeded[0] == seeded[2] != seeded[1]


def post_keys(entropies):
    """The public keys of two sessions of one job, as they were posted."""
    keys = []
    for entropy in entropies:
        session = Session(mixture(20, 2, 2, seed=5), **TINY)
        parties = [session.party(1), make_party(2, entropy)]
        completed = session.run(parties)
        posts = completed.alice._posts
        keys.append([raw for (stage, author), raw in posts.items() if (author, stage) == (2, 1)])
    return keys


def test_two_sessions_of_one_job_have_different_keys(monkeypatch):
    first, second = post_keys([SystemEntropy(), SystemEntropy()])
    assert len(first) == len(second) == 1
    assert first != second


def test_the_mutant_with_a_constant_stream_is_noticed(monkeypatch):
    monkeypatch.setattr(relayed, "Stream", lambda key: Stream(bytes(32)))
    first, second = post_keys([SystemEntropy(), SystemEntropy()])
    assert first == second
