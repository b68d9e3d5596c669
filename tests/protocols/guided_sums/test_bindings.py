"""What questions, links and results are bound to: each element of each counts, also where another covers it."""

import itertools

import pytest
from msgspec import structs

from cloister.aggregation import pack_members
from cloister.crypto import SeededEntropy
from cloister.crypto.sealing import open_keyed, seal_keyed
from cloister.errors import RemoteProtocolError
from cloister.privacy.units import Unit
from cloister.protocols.guided_sums import statements
from cloister.protocols.guided_sums.query import Idle
from cloister.protocols.guided_sums.statements import Stated, Statements, check_stated, first_link, next_link
from cloister.roles import Seat
from tests.protocols.guided_sums import lies
from tests.protocols.guided_sums.test_questions import prepare
from tests.sessions import SESSION, identity, make_directory

OTHER_SESSION = bytes(16)
DIRECTORY = make_directory(lies.IDENTITIES, 2)


class SameBytes:
    """Entropy that gives the same bytes whenever it is asked."""

    is_simulation = True

    def __init__(self, label):
        self._label = label

    def bytes(self, count):
        return SeededEntropy(1, self._label).bytes(count)


def make_statements(session=SESSION, seed=lies.SEED):
    return Statements(forms=prepare("direct", Unit.RECORD)[1], directory=DIRECTORY, seed=seed, session=session)


def state(session=SESSION, round_=1, leader=1, salt="salt", seed=lies.SEED):
    seat = Seat(number=leader, identity=identity(lies.IDENTITIES, leader), entropy=SameBytes(salt), session=session)
    return make_statements(session, seed).state(round_, Idle(), seat=seat)


CASES = list(itertools.product((SESSION, OTHER_SESSION), (4, 5), (1, 2), ("salt", "other")))
"""Sessions, rounds, leaders and salts; the two rounds have the same length."""


def test_no_two_questions_are_sealed_under_one_key():
    """The same content each time: were a session, round, leader or salt left out, two boxes would be equal."""
    lengths = prepare("direct", Unit.RECORD)[1].lengths
    assert lengths[3] == lengths[4]
    boxes = [state(*case).box for case in CASES] + [state(SESSION, 4, 1, "salt", bytes(32)).box]
    assert len(set(boxes)) == len(boxes) == 17


def test_a_question_is_signed_for_one_session_round_leader_salt_and_box():
    length = prepare("direct", Unit.RECORD)[1].lengths[3]
    true = state(SESSION, 4)

    def take(stated, session=SESSION, round_=4):
        check_stated(round_, stated, length=length, directory=DIRECTORY, session=session)

    take(true)
    unnamed = identity(lies.IDENTITIES, 1).sign(SESSION, 4, 1, true.salt, true.box)
    for stated, where in (
        (true, {"session": OTHER_SESSION}),
        (true, {"round_": 5}),
        (structs.replace(true, leader=2), {}),
        (structs.replace(true, salt=bytes(16)), {}),
        (structs.replace(true, box=bytes(len(true.box))), {}),
        (structs.replace(true, signature=unnamed), {}),
    ):
        with pytest.raises(RemoteProtocolError, match="must be signed by its identity"):
            take(stated, **where)
    both = (identity(lies.IDENTITIES, 1).public_bytes,) * 2  # one identity behind two numbers
    with pytest.raises(RemoteProtocolError, match="must be signed by its identity"):
        check_stated(4, structs.replace(true, leader=2), length=length, directory=both, session=SESSION)
    with pytest.raises(RemoteProtocolError, match="from 1 to 2; got 3"):
        take(structs.replace(true, leader=3))
    with pytest.raises(RemoteProtocolError, match="bytes long"):
        take(structs.replace(true, salt=b""))


def test_every_link_follows_from_all_that_was_stated():
    base = Stated(1, b"salt", b"box", b"signature")
    others = [base, *(structs.replace(base, **one) for one in ({"leader": 2}, {"salt": b"other"}, {"box": b"other"}))]
    links = [next_link(link, round_, stated) for link in (b"1", b"2") for round_ in (1, 2) for stated in others]
    links += [first_link(agreement, session) for agreement in (b"1", b"2") for session in (SESSION, OTHER_SESSION)]
    assert len(set(links)) == len(links) == 20


def test_a_result_is_signed_under_its_session_seed_and_link():
    signer, counted = identity(lies.IDENTITIES, 1), {}
    cases = list(itertools.product((SESSION, OTHER_SESSION), (lies.SEED, bytes(32)), (b"1" * 32, b"2" * 32)))
    for session, seed, link in cases:
        signature = make_statements(session, seed).sign_result(link, signer)
        for other in cases:
            one = make_statements(*other[:2])
            counted[session, seed, link, other] = one.read_votes(
                signature, pack_members((1,), len(DIRECTORY)), other[2]
            )[1]
    assert all(count == ((*case,) == other) for (*case, other), count in counted.items())
    with pytest.raises(RemoteProtocolError, match="64 bytes for each of 2 members"):
        make_statements().read_votes(bytes(64), pack_members((1, 2), len(DIRECTORY)), b"1" * 32)


# --- a party that draws two seeds -------------------------------------------------------------------------------------


class TwoFaces:
    """A cipher that does not commit to its key: one box opens to one result under one seed, to another under others."""

    def __init__(self, monkeypatch, seed, statement):
        self._seed, self._statement = seed, statement
        monkeypatch.setattr(statements, "open_keyed", self.open)

    def open(self, box, secret, *context):
        return open_keyed(box, secret, *context) if secret == self._seed else self._statement


def find_under_two_seeds(monkeypatch, sign=None):
    """What two parties find that were given different seeds, and one box with a result for each of them."""
    forms = prepare("feddp", Unit.RECORD)[1]
    written = forms.write(1, prepare("feddp", Unit.RECORD)[2][0].question)
    box = seal_keyed(written, lies.SEED, "question", SESSION, 1, 1, b"salt")
    TwoFaces(monkeypatch, lies.SEED, forms.write(1, Idle()))
    one, other = (Statements(forms=forms, directory=DIRECTORY, seed=s, session=SESSION) for s in (lies.SEED, bytes(32)))
    if sign is not None:
        monkeypatch.setattr(Statements, "name_result", sign)
    link = b"link" * 8
    read = [forms.read(1, statements.open_keyed(box, s.seed, "question", SESSION, 1, 1, b"salt")) for s in (one, other)]
    signatures = [s.sign_result(link, identity(lies.IDENTITIES, n)) for n, s in ((1, one), (2, other))]
    counts = [s.read_votes(b"".join(signatures), pack_members((1, 2), len(DIRECTORY)), link)[1] for s in (one, other)]
    return [query.question for query in read], counts


def test_two_results_in_one_box_are_signed_apart(monkeypatch):
    read, counts = find_under_two_seeds(monkeypatch)
    assert read[0] != read[1]
    assert counts == [1, 1]


def test_signatures_on_the_sealed_bytes_alone_would_pass_for_both(monkeypatch):
    """The mutant: each party counts the other's signature on what it has not found."""
    read, counts = find_under_two_seeds(monkeypatch, sign=lambda self, link: link)
    assert read[0] != read[1]
    assert counts == [2, 2]
