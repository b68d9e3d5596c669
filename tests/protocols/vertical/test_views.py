"""Each role of a vertical session receives what its leakage table says; mutants show that the tests can fail."""

import itertools
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy import stats

from cloister.crypto import TAG_BYTES
from cloister.lattice.lwe import LweBatch, decrypt_lwe
from cloister.lattice.packing import unpack_words
from cloister.protocols.vertical import computing, holder, uploads
from cloister.protocols.vertical.computing import ComputingParty
from cloister.protocols.vertical.contents import PostedKeys, Prepared, decode_asked, unpack_answer
from cloister.protocols.vertical.holder import HolderParty
from cloister.protocols.vertical.leakage import SEMI_HONEST, describe_leakage
from cloister.protocols.vertical.messages import CODEC, Done
from cloister.protocols.vertical.noise import ChargedFlood, StatisticalFlood
from tests.lattice.answers import measure_errors
from tests.protocols.vertical.sessions import CASES, TINY, Session, make_case, run_case
from tests.protocols.vertical.tables import mixture
from tests.sessions import SESSION

ALPHA = 1e-6
TABLE = mixture(60, 2, 2, seed=5)


class OpenAlice(ComputingParty):
    """Keeps what she sends before the modulus is switched."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.sent = []

    def _compute(self):
        raw = super()._compute()
        self.sent.append(self._answer)
        return raw


class OpenHolder(HolderParty):
    """Keeps its key, the answers that it is asked to decrypt, and what it says."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.asked, self.said = [], []

    def close(self):
        """Wipe nothing: the test looks at the key."""

    def _decrypt(self, opened):
        self.asked.append(self._find_asked(opened)[1])
        self.said.append(super()._decrypt(opened))
        return self.said[-1]


def run_open(**options):
    return Session(TABLE, **{**TINY, "alice": OpenAlice, "holder": OpenHolder, "rounds": 5, **options}).run()


def draw_nothing(settings, parts, duty):
    return np.zeros(sum(part.length for part in parts), dtype=np.int64)


def subtract(completed, number):
    """What a party makes of the released totals by taking away the noise that it added itself."""
    shares = completed.shares_of(number)
    return [
        total - np.concatenate([noise for _, noise in own]) for total, own in zip(completed.totals, shares, strict=True)
    ]


# --- the relay ---------------------------------------------------------------------------------------------------


def boxes_of(run):
    """Every box that the relay carried, and who sent it when."""
    for entry in run.views[0]:
        if isinstance(entry.message, Done):
            if entry.message.post is not None:
                yield entry.step, entry.sender, 0, entry.message.post
            for letter in entry.message.letters:
                yield entry.step, entry.sender, letter.recipient, letter.box


def form_of(run):
    """All that the relay can see without opening a box: who sent how much, to whom, when."""
    return [
        (entry.step, entry.sender, type(entry.message).__name__, len(encode(entry.message))) for entry in run.views[0]
    ] + [(step, sender, recipient, len(box)) for step, sender, recipient, box in boxes_of(run)]


def encode(message):
    return CODEC.encode(message, session=SESSION, step=0, sender=1)


@pytest.mark.parametrize("name", ["residuals", "Alice has nothing", "server-aided", "threshold", "joint, collective"])
def test_lengths_depend_on_public_values_only(name):
    """Two tables that have nothing in common but their shape."""
    first = run_case(name)
    session = make_case(name)
    rng = np.random.default_rng(1)
    session.inputs = session.split(np.rint(rng.choice([-0.9, 0.99], session.table.shape) * 2**16) / 2**16)
    second = session.run(record_views=True)
    assert not np.array_equal(second.alice.centres, first.alice.centres)
    assert form_of(second.run) == form_of(first.run)
    assert [t.bytes_received for t in second.run.traffic.values()] == [
        t.bytes_received for t in first.run.traffic.values()
    ]


@pytest.mark.parametrize("name", CASES)
def test_the_relay_carries_boxes_that_hold_no_message(name):
    """No box decodes to a content, and their bytes are uniform."""
    counts = np.zeros(256, dtype=np.int64)
    boxes = [box for *_, box in boxes_of(run_case(name).run)]
    assert len(boxes) > 8
    for box in boxes:
        assert len(box) > TAG_BYTES
        for kind in (Prepared, PostedKeys):
            with pytest.raises(msgspec.MsgspecError):
                msgspec.msgpack.decode(box, type=kind)
        counts += np.bincount(np.frombuffer(box, np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue > ALPHA


def leave_open(monkeypatch):
    """The mutant that does not seal: a box is then its content."""
    monkeypatch.setattr("cloister.protocols.vertical.relayed.seal_keyed", lambda content, *context: content + bytes(16))
    monkeypatch.setattr("cloister.protocols.vertical.relayed.open_keyed", lambda box, *context: box[:-16])


def test_the_check_of_boxes_can_fail(monkeypatch):
    leave_open(monkeypatch)
    boxes = [box for *_, box in boxes_of(Session(TABLE, **TINY).run(record_views=True).run)]
    msgspec.msgpack.decode(boxes[0][:-16], type=Prepared)
    counts = np.bincount(np.frombuffer(b"".join(boxes), np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue < ALPHA


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", ["residuals", "Alice is last and has many", "server-aided", "joint, collective"])
def test_no_box_holds_a_column_or_with_a_budget_an_exact_sum(name, exact, monkeypatch):
    """With every box left open: a record's values are in none; exact totals only where they are released."""
    leave_open(monkeypatch)
    completed = make_case(name, exact=exact).run(record_views=True)
    said = b"".join(box for *_, box in boxes_of(completed.run))
    columns = completed.session.table.T
    forms = [column[:2].astype(kind).tobytes() for column in columns for kind in ("<f8", "<f4")]
    forms += [
        np.rint(column[:2] * units).astype(kind).tobytes()
        for column in columns
        for units in (2**8, 2**16)
        for kind in ("<i8", "<i4")
    ]
    assert not [form for form in forms if form in said]
    sums = [total.astype("<i8").tobytes() for total in completed.exact_totals()]
    assert all((total in said) == exact for total in sums)
    assert all(total.astype("<i8").tobytes() in said for total in completed.totals)  # the search finds what is there


# --- Alice -------------------------------------------------------------------------------------------------------


def alice_finds_exact_totals(**options):
    """How many of the totals are exact once Alice has taken her own noise away."""
    found = run_open(**options)
    return sum(
        np.array_equal(rest, exact) for rest, exact in zip(subtract(found, 1), found.exact_totals(), strict=True)
    )


COLLECTIVE = {"columns": ((0,), (1,), ()), "model": "collective"}


@pytest.mark.parametrize("options", [{}, COLLECTIVE], ids=["two-party", "collective"])
def test_alice_cannot_take_all_noise_away(options, monkeypatch):
    assert alice_finds_exact_totals(**options) == 0
    # The mutant in which only Alice adds noise.
    monkeypatch.setattr(holder, "pay_share", draw_nothing)
    monkeypatch.setattr("tests.protocols.vertical.sessions.Completed.shares_of", shares_of_the_only_one)
    assert alice_finds_exact_totals(**options) == 5


def shares_of_the_only_one(completed, number):
    """Alice's draws in a session in which nobody else drew."""
    floods = isinstance(completed.session.agreement.flood, ChargedFlood)
    drawn = completed.session.duties[number].sampler.drawn[-len(completed.totals) * (2 + floods) :]
    return [drawn[i : i + 2] for i in range(0, len(drawn), 2 + floods)]


def test_what_the_key_holder_writes_to_alice_is_the_noisy_total_and_nothing_else():
    completed = run_open()
    bob = completed.parties[1]
    assert [set(said.letters) for said in bob.said] == [{1}] * 5
    assert all(said.post is None for said in bob.said)
    for said, total in zip(bob.said, completed.totals, strict=True):
        assert said.letters[1] == total.astype("<i8").tobytes()


def test_shares_of_a_decryption_look_uniform_to_alice_but_for_their_sum():
    """One holder's shares alone are smudged numbers modulo q."""
    completed = run_open(**COLLECTIVE, rounds=20)
    parameters = completed.session.agreement.parameters
    primes, members = np.array(parameters.primes), 2 * 2
    for party in completed.parties[1:]:
        shares = [
            unpack_words(said.letters[1][members:], 27, (6, len(primes))).astype(np.int64) * 16 // primes
            for said in party.said
        ]
        assert stats.chisquare(np.bincount(np.ravel(shares), minlength=16)).pvalue > ALPHA


# --- the key holder ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"budget": None}, {"residuals": True}], ids=str)
def test_answers_decrypt_to_the_total_with_alices_noise(options):
    completed = run_open(**options)
    bob, agreement = completed.parties[1], completed.session.agreement
    exact = completed.exact_totals()
    hers = completed.shares_of(1) if "budget" not in options else [[(None, 0 * total)] for total in exact]
    for raw, total, own in zip(bob.asked, exact, hers, strict=True):
        answer = decode_asked(raw).answer
        batch = unpack_answer(answer, parameters=agreement.parameters, length=len(total), bits=agreement.switch_bits)
        assert decrypt_lwe(bob._keys, batch) == (total + np.concatenate([noise for _, noise in own])).tolist()


def errors_of_answers(**options):
    """What is left in the low bits of Alice's answers when the key holder takes away all that it decrypts."""
    completed = run_open(**options)
    bob = completed.parties[1]
    sums = [decrypt_lwe(bob._keys, batch) for batch in completed.alice.sent]
    errors = [measure_errors(bob._keys, batch, own) for batch, own in zip(completed.alice.sent, sums, strict=True)]
    return np.array(errors, dtype=float).ravel(), completed.session.agreement.flood


def charged_flood_fits():
    """P-value of "errors are as wide as the flood that was paid for", two-sided."""
    errors, flood = errors_of_answers(rounds=20)
    assert isinstance(flood, ChargedFlood)
    tail = stats.chi2.cdf(((errors / flood.std) ** 2).sum(), errors.size)
    return 2 * min(tail, 1 - tail)


def uniform_flood_fits():
    """P-value of "errors are uniform on +-2^bits"."""
    errors, flood = errors_of_answers(rounds=20, budget=None)
    assert isinstance(flood, StatisticalFlood)
    return stats.kstest(errors / 2.0**flood.bits, "uniform", args=(-1, 2)).pvalue


@pytest.mark.parametrize("fits", [charged_flood_fits, uniform_flood_fits])
def test_errors_look_like_the_flood(fits, monkeypatch):
    assert fits() > ALPHA
    monkeypatch.setattr(computing, "add_error", lambda batch, flood: batch)  # the mutant without one
    assert fits() < ALPHA


def masks_of(completed):
    return np.concatenate([batch.masks for batch in completed.alice.sent])


def repeated_masks():
    """How many masks of a session on converged centres stand in two answers: the weights are then the same."""
    completed = run_open(budget=None, rounds=8)
    queries = completed.queries()
    assert np.array_equal(queries[-1].centres, queries[-2].centres)
    digests = [mask.tobytes() for mask in masks_of(completed)]
    return len(digests) - len(set(digests))


def test_masks_differ_for_equal_weights(monkeypatch):
    assert repeated_masks() == 0
    monkeypatch.setattr(computing, "rerandomise", lambda batch, public, stream: batch)
    monkeypatch.setattr(holder.DecryptionGuard, "admit", lambda guard, masks: None)  # which would stop the session
    assert repeated_masks() > 0


def test_masks_look_uniform():
    completed = run_open()
    masks, primes = masks_of(completed).astype(np.int64), np.array(completed.session.agreement.parameters.primes)
    slices = (masks * 64 // primes[:, None]).ravel()
    assert stats.chisquare(np.bincount(slices, minlength=64)).pvalue > ALPHA
    # Each is a number of its own: what two of them have in common is what chance gives.
    for one, other in itertools.combinations(masks[:6], 2):
        assert np.corrcoef(one.ravel(), other.ravel())[0, 1] < 0.06


class Remembering:
    """Keeps the masks that a holder of columns encrypts with: it may."""

    def __init__(self):
        self.masks = None

    def __call__(self, public, messages, stream):
        self.masks, bodies = self.real(public, messages, stream)
        return self.masks, bodies

    real = staticmethod(uploads.encrypt_public)


def attack_weights(monkeypatch):
    """A holder divides the histogram's masks by its own, and reads off which records are in which of Alice's cells.

    Number (a, c) of the histogram is the polynomial of Alice's cell a times the mask of encrypted cell c.
    """
    memory = Remembering()
    monkeypatch.setattr(uploads, "encrypt_public", memory)
    completed = run_open(**COLLECTIVE, start="synopsis", rounds=1)
    query, parameters = completed.queries()[0], completed.session.agreement.parameters
    attacker = completed.parties[1]
    answer = decode_asked(attacker.asked[0]).answer
    batch = unpack_answer(answer, parameters=parameters, length=query.length, bits=None)
    assert isinstance(batch, LweBatch)
    assert query.groups == len(query.group_of) == len(memory.masks)  # no cells put together
    prime = parameters.primes[0]
    inverses = np.array([pow(int(x), -1, prime) for x in memory.masks[0, 0]], dtype=object)
    found = np.full(len(TABLE), -1)
    for cell in range(query.alice_cells):
        masks = parameters.ring.forward(batch.masks[cell * query.groups][None])[0, 0]
        quotient = np.zeros((1, len(parameters.primes), parameters.degree), dtype=np.uint32)
        quotient[0, 0] = (masks.astype(object) * inverses % prime).astype(np.uint32)
        weights = parameters.ring.inverse(quotient)[0, 0]
        # Weight p stands at place N - p with the other sign, weight 0 at place 0.
        here = weights[-np.arange(len(TABLE)) % parameters.degree] == np.where(np.arange(len(TABLE)), prime - 1, 1)
        found[here] = cell
    return found, completed.alice._cells


def test_without_re_randomisation_a_holder_reads_alices_cells(monkeypatch):
    found, _ = attack_weights(monkeypatch)
    assert (found == -1).all()
    monkeypatch.setattr(computing, "rerandomise", lambda batch, public, stream: batch)
    monkeypatch.setattr(holder.DecryptionGuard, "admit", lambda guard, masks: None)  # empty cells have equal masks
    found, cells = attack_weights(monkeypatch)
    assert np.array_equal(found, cells)
    assert len(set(cells.tolist())) > 1


def repeated_noise():
    """How many of Alice's shares of noise a key holder sees twice: what it decrypts less the exact totals."""
    completed = run_open(rounds=6)
    bob = completed.parties[1]
    seen = [
        tuple(np.array(decrypt_lwe(bob._keys, batch)) - exact)
        for batch, exact in zip(completed.alice.sent, completed.exact_totals(), strict=True)
    ]
    return len(seen) - len(set(seen))


def test_noise_is_drawn_anew_for_every_pass(monkeypatch):
    assert repeated_noise() == 0
    kept, real = {}, computing.pay_share
    monkeypatch.setattr(
        computing, "pay_share", lambda s, parts, duty: kept.setdefault(len(parts), real(s, parts, duty))
    )
    assert repeated_noise() == 5  # the mutant that uses its first draw again


def holder_finds_exact_totals(number, **options):
    found = run_open(**options)
    return sum(
        np.array_equal(rest, exact) for rest, exact in zip(subtract(found, number), found.exact_totals(), strict=True)
    )


def test_no_key_holder_can_take_all_noise_away(monkeypatch):
    assert holder_finds_exact_totals(2) == 0
    assert holder_finds_exact_totals(2, **COLLECTIVE) == holder_finds_exact_totals(3, **COLLECTIVE) == 0
    # The mutant in which only the key holder adds noise.
    monkeypatch.setattr(computing, "pay_share", draw_nothing)
    assert holder_finds_exact_totals(2) == 5


def test_no_party_object_hands_out_records():
    shown = {name for kind in (ComputingParty, HolderParty) for name in dir(kind) if not name.startswith("_")}
    assert shown == {"centres", "close", "codebooks", "finding", "finished", "handle", "inquiry", "released_totals"}


def test_the_model_is_said_in_the_same_words_wherever_somebody_looks():
    root = Path(__file__).parents[3]
    for name in ("SECURITY.md", "docs/proofs/collective-keys.md"):
        assert SEMI_HONEST in (root / name).read_text(encoding="utf-8")
    for name in CASES:
        assert SEMI_HONEST in describe_leakage(make_case(name).agreement).breaks_if  # and so on every card
