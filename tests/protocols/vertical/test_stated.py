"""What the computing party states: a key holder derives norm and price itself, and refuses lies before it pays."""

from dataclasses import replace
from functools import cache
from math import inf, isfinite, nan, nextafter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as restate

from cloister.errors import BudgetError, RemoteProtocolError, TooFewPartiesError
from cloister.privacy.accounting import Accountant
from cloister.privacy.books import RhoPrepayment
from cloister.protocols.vertical import algorithm, holder, stated
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.contents import Asked, decode_asked, encode
from cloister.protocols.vertical.messages import Turn
from cloister.protocols.vertical.protocol import make_prepayment
from cloister.protocols.vertical.query import HISTOGRAM, LloydQuery, round_to_length
from cloister.protocols.vertical.stated import StatedHistogram, StatedRound, derive_parts, state_query
from tests.owners import told_to_owner
from tests.protocols.vertical.sessions import CASES, TINY, Session, make_case, run_case, same_finding
from tests.protocols.vertical.tables import mixture
from tests.protocols.vertical.test_sensitivity import LAYOUTS, measure, split_parts
from tests.protocols.vertical.test_sensitivity import make_case as make_table

ROUND = "Lloyd round 1"
ACCEPTED = []


# --- what a key holder derives ------------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_from_what_is_stated_a_key_holder_derives_what_the_query_says(name, exact):
    completed = run_case(name, exact=exact)
    codebooks, public = completed.alice.codebooks, completed.session.settings
    for query in completed.queries():
        assert derive_parts(state_query(query), public, codebooks, query.name) == query.parts


@pytest.mark.parametrize("name", CASES)
def test_what_is_stated_has_one_length_whatever_it_says(name):
    lengths = {len(encode(Asked(state_query(query), b""))) for query in run_case(name).queries()[1:]}
    assert len(lengths) <= 1
    assert len(encode(StatedRound(0.0, 1.0, 1.0, 1.0))) == len(encode(StatedRound(2.0**20, 3.0, 1e-9, 1e99)))


@cache
def make_public(layout, epsilon, residuals):
    return make_table(layout, epsilon=epsilon, **({"residuals": True} if residuals else {}))


ODD_RADII = st.one_of(st.none(), st.sampled_from([-1.0, 0.5, 601.0, 1e9, inf, -inf, nan, -0.0]), st.floats())
ODD_FACTORS = st.one_of(st.none(), st.sampled_from([0.5, 1 - 1e-9, 2.1, -1.0, 0.0, inf, nan]))


def draw_factor(data):
    """How many times the noise that is right; usually a little more than once."""
    usual = st.sampled_from([1.0, 1.0, 1 + 1e-7, 1.5, 1.99])
    return data.draw(usual if data.draw(st.integers(0, 4)) else ODD_FACTORS)


def draw_radius(data, public):
    """A radius; usually one that the public values allow."""
    usual = st.integers(0, public.weight_max + public.residual_most).map(float)
    return data.draw(usual if data.draw(st.integers(0, 4)) else ODD_RADII)


def draw_statement(data, public):
    """A statement with noise around what would be right, and whether it is for the right kind of pass."""
    factors = [draw_factor(data) for _ in range(2)]
    if data.draw(st.booleans()):
        scale = None if factors[0] is None else factors[0] * public.sigma_for(1, public.start_rho)
        return StatedHistogram(scale), HISTOGRAM
    alice, encrypted = draw_radius(data, public), draw_radius(data, public)
    l2_squared = sum(int(radius) ** 2 for radius in (alice, encrypted) if radius and abs(radius) < 2**20) or 1
    right = public.sigma_for(l2_squared, public.sum_rho), public.sigma_for(1, public.count_rho)
    scales = [None if factor is None else factor * own for factor, own in zip(factors, right, strict=True)]
    return StatedRound(alice, encrypted, *scales), ROUND


def imagine_round(case, parts, statement, seed):
    """A round with these radii, and centres and constants as bad as they can be."""
    public, rng = case.settings, np.random.default_rng(seed)
    k, d, columns = public.clusters, public.dimensions, public.layout.alice_count
    centres = rng.choice([-1.0, 1.0, 0.25], (k, d))
    origins = np.rint(centres * public.units).astype(np.int64)
    left = int(statement.radius_encrypted) - (case.codebooks.residual_radius or 0)
    return LloydQuery(
        number=1,
        centres=centres,
        origins=origins,
        units=public.units,
        constants=round_to_length(case.codebooks.reps * public.units - origins[:, None, columns:], left),
        radius_alice=int(statement.radius_alice),
        radius_encrypted=int(statement.radius_encrypted),
        sigma_sum=parts[0].sigma,
        sigma_count=parts[1].sigma,
    )


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    data=st.data(),
    layout=st.sampled_from(sorted(LAYOUTS)),
    epsilon=st.sampled_from([0.05, 1.0, 30.0]),
    residuals=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_what_is_accepted_moves_by_no_more_than_its_price_and_all_of_it_fits_the_budget(
    data, layout, epsilon, residuals, seed
):
    case = make_public(layout, epsilon, residuals and layout != "three holders")
    public = case.settings
    statement, name = draw_statement(data, public)
    try:
        parts = derive_parts(statement, public, case.codebooks, name)
    except RemoteProtocolError:
        return
    ACCEPTED.append(name)
    accountant, prepaid = Accountant(public.budget), RhoPrepayment(make_prepayment(public))
    for _ in range(public.rounds_made if name == ROUND else 1):
        for part in parts:  # the worst that can be stated in every pass of its kind
            accountant.charge(part.release(public))
            prepaid.charge(part.release(public))
    if name == HISTOGRAM:
        assert parts[0].length == public.histogram_length
        return
    query = imagine_round(case, parts, statement, seed)
    assert query.parts == parts
    for one in case.ones:
        for part, stretch in zip(parts, split_parts(query, measure(query, one[None], case)), strict=True):
            assert (stretch**2).sum() <= part.l2_squared


def test_some_of_these_statements_were_accepted():
    assert min(ACCEPTED.count(HISTOGRAM), ACCEPTED.count(ROUND)) >= 30


# --- lies ---------------------------------------------------------------------------------------------------------

LIES = {
    "half the noise on sums": lambda q, public: restate(q, sigma_sum=q.sigma_sum / 2),
    "a little less noise on sums": lambda q, public: restate(q, sigma_sum=q.sigma_sum * (1 - 1e-7)),
    "half the noise on counts": lambda q, public: restate(q, sigma_count=q.sigma_count / 2),
    "no noise": lambda q, public: restate(q, sigma_sum=None, sigma_count=None),
    "no noise on counts": lambda q, public: restate(q, sigma_count=0.0),
    "negative noise": lambda q, public: restate(q, sigma_sum=-q.sigma_sum),
    "infinite noise": lambda q, public: restate(q, sigma_sum=inf),
    "noise that is no number": lambda q, public: restate(q, sigma_count=nan),
    "far more noise": lambda q, public: restate(q, sigma_count=3 * q.sigma_count),
    "longer offsets for the same noise": lambda q, public: restate(q, radius_alice=q.radius_alice + 1),
    "offsets that are not clipped": lambda q, public: restate(q, radius_alice=None),
    "nothing is clipped": lambda q, public: restate(q, radius_alice=None, radius_encrypted=None),
    "a negative radius": lambda q, public: restate(q, radius_alice=-q.radius_alice),
    "a radius between units": lambda q, public: restate(q, radius_encrypted=q.radius_encrypted - 0.5),
    "a radius that is no number": lambda q, public: restate(q, radius_encrypted=nan),
    "radii that would not fit": lambda q, public: restate(
        q, radius_alice=2.0**19, sigma_sum=public.sigma_for(2**38 + int(q.radius_encrypted) ** 2, public.sum_rho)
    ),
    "no encrypted offsets": lambda q, public: restate(q, radius_encrypted=0.0),
    "another kind of query": lambda q, public: StatedHistogram(public.sigma_for(1, public.start_rho or public.sum_rho)),
}
MODELS = {
    "two-party": {"columns": ((0,), (1,))},
    "collective": {"columns": ((0,), (1,), ()), "model": "collective"},
    "threshold": {"columns": ((0,), (1,), (), ()), "model": "collective", "threshold": 2},
}
TABLE = mixture(60, 2, 2, seed=5)


class Lied:
    """Key holder 2 with a computing party that lies first, in the decryption of the second round."""

    def __init__(self, session, make_false_turns):
        self.session, self.make_false_turns = session, make_false_turns
        self.party, self.refused = session.party(2), []

    def __getattr__(self, name):
        return getattr(self.party, name)

    def handle(self, request):
        if isinstance(request, Turn):
            stage = self.session.agreement.schedule[request.stage]
            if (stage.kind, stage.index) == ("decrypt", 1):
                for name, turn in self.make_false_turns(self, request):
                    self.refuse(name, turn)
        return self.party.handle(request)

    def refuse(self, name, turn):
        duty = self.session.duties[2]
        before = duty.charger.spent().releases, len(duty.sampler.drawn), self.party._guard.masks_spent
        with pytest.raises(RemoteProtocolError):
            self.party.handle(turn)
        assert (duty.charger.spent().releases, len(duty.sampler.drawn), self.party._guard.masks_spent) == before
        self.refused.append(name)


def run_lied(model, make_false_turns, **options):
    """A session in which everything false comes before the true message; it must end as any other."""
    session = Session(TABLE, **{**MODELS[model], **TINY, **options})
    liar = Lied(session, make_false_turns)
    parties = [liar if number == 2 else session.party(number) for number in session.numbers]
    liar.alice = parties[0]
    completed = session.run(parties)
    honest = Session(TABLE, **{**MODELS[model], **TINY, **options}).run()
    assert all(same_finding(party.finding, honest.alice.finding) for party in parties)
    assert session.releases(2) == honest.session.releases(2)
    assert completed.run.result == honest.run.result
    return liar.refused


def state_falsely(liar, turn):
    """Alice's letter again, with each lie in the place of what she states."""
    agreement = liar.session.agreement
    stage = next(n for n, s in enumerate(agreement.schedule) if (s.kind, s.index) == ("compute", 1))
    true = decode_asked(liar.party._find_asked(opened_by(liar, turn))[1])
    for name, lie in LIES.items():
        letter = liar.alice._mail.seal_letter(encode(Asked(lie(true.query, agreement.settings), true.answer)), stage, 2)
        yield name, Turn(turn.stage, turn.members, turn.posts, (letter,))


def opened_by(liar, turn):
    mail, agreement = liar.party._mail, liar.session.agreement
    return holder.Opened(
        stage=agreement.schedule[turn.stage],
        number=turn.stage,
        members=turn.members,
        posts=mail.open_posts(turn),
        letters=mail.open_letters(turn),
    )


@pytest.mark.parametrize("model", MODELS)
def test_every_lie_is_refused_before_anything_is_paid_and_the_true_message_is_answered_afterwards(model):
    assert run_lied(model, state_falsely) == list(LIES)


def test_residuals_that_are_longer_than_what_is_paid_for_are_refused():
    completed = run_case("residuals")
    public, books = completed.session.settings, completed.alice.codebooks
    residual = books.residual_radius
    assert residual > 1
    for radius, wanted in ((residual, True), (residual - 1, False)):
        query = StatedRound(
            4.0, float(radius), public.sigma_for(16 + radius**2, public.sum_rho), public.sigma_for(1, public.count_rho)
        )
        if wanted:
            derive_parts(query, public, books, ROUND)
        else:
            with pytest.raises(RemoteProtocolError, match=f"radii from {residual} to"):
                derive_parts(query, public, books, ROUND)


def ask_falsely(liar, turn):
    """A relay that leaves the protocol, with the true letter: what it names falsely is refused, the letter kept."""
    yield "nobody", Turn(turn.stage, (), turn.posts, turn.letters)
    yield "others", Turn(turn.stage, tuple({2, 3, 4} - {2}), turn.posts, turn.letters)
    yield "too many", Turn(turn.stage, (2, 3, 4), turn.posts, turn.letters)
    yield "alone", Turn(turn.stage, (2,), turn.posts, turn.letters)
    yield "twice", Turn(turn.stage, (2, 2), turn.posts, turn.letters)
    yield "too late", Turn(turn.stage + 1, turn.members, turn.posts, turn.letters)


def test_a_turn_that_names_other_members_costs_nothing():
    assert len(run_lied("threshold", ask_falsely)) == 6


def test_in_an_exact_session_noise_and_radii_are_refused():
    public = make_case("two clusters", exact=True).settings
    books = run_case("two clusters", exact=True).alice.codebooks
    derive_parts(StatedRound(None, None, None, None), public, books, ROUND)
    for false in ((4.0, None, None, None), (None, 4.0, None, None), (None, None, 1.0, None), (None, None, None, 1.0)):
        with pytest.raises(RemoteProtocolError):
            derive_parts(StatedRound(*false), public, books, ROUND)


# --- mutants: each check is needed --------------------------------------------------------------------------------


def list_accepted():
    """Which lies are accepted where the holder derives what it is told; the truth is none of them."""
    completed = run_case("two clusters")
    public, books = completed.session.settings, completed.alice.codebooks
    query = completed.queries()[1]
    true, accepted = state_query(query), set()
    for name, lie in LIES.items():
        try:
            derive_parts(lie(true, public), public, books, query.name)
        except RemoteProtocolError:
            continue
        accepted.add(name)
    return accepted


def test_without_the_check_of_noise_a_liar_is_believed(monkeypatch):
    assert list_accepted() == set()
    monkeypatch.setattr(stated, "_is_enough", lambda part, rho: True)
    assert list_accepted() == {
        *(name for name in LIES if "noise" in name),
        "longer offsets for the same noise",
    }


def test_without_the_check_of_radii_a_liar_is_believed(monkeypatch):
    def read_anything(settings, radius, least, most):
        return int(radius) if radius is not None and isfinite(radius) else 0

    monkeypatch.setattr(stated, "_read_radius", read_anything)
    lies_about_radii = ("radii", "a radius", "a negative radius", "no encrypted", "offsets that are not clipped")
    assert list_accepted() == {name for name in LIES if name.startswith(lies_about_radii)}


def test_without_the_check_of_the_kind_another_query_is_answered(monkeypatch):
    real = stated._refuse
    monkeypatch.setattr(stated, "_refuse", lambda wanted, got: wanted.startswith("be ") or real(wanted, got))
    assert list_accepted() == {"another kind of query"}


def test_a_lie_that_is_believed_ends_the_session_after_it_was_paid_for(monkeypatch):
    """What the checks are for: the key holder would add half the noise, were it not for its books."""
    monkeypatch.setattr(stated, "_is_enough", lambda part, rho: True)
    with told_to_owner(BudgetError, "Lloyd round 2"):
        run_lied("two-party", state_falsely)


# --- processors ---------------------------------------------------------------------------------------------------


def perturb(agreement):
    """The same agreement on a machine whose arithmetic rounds otherwise."""
    other = replace(agreement)
    public = replace(agreement.settings)
    public.__dict__["rho"] = nextafter(nextafter(agreement.settings.rho, inf), inf)
    object.__setattr__(other, "settings", public)
    assert public.sum_rho != agreement.settings.sum_rho
    return other


@pytest.mark.parametrize("model", MODELS)
def test_key_holders_whose_arithmetic_rounds_otherwise_end_with_the_same_result(model, monkeypatch):
    session = Session(TABLE, **{**MODELS[model], **TINY})
    expected = Session(TABLE, **{**MODELS[model], **TINY}).run().alice.finding
    alice, agreed = session.party(1), session.agreed
    session.agreed = replace(agreed, agreement=perturb(session.agreement))
    others = [session.party(number) for number in session.numbers if number != 1]
    assert isinstance(session.agreed.agreement, VerticalAgreement)
    assert session.agreed.agreement.digest == agreed.agreement.digest
    session.agreed = agreed
    session.run([alice, *others])
    assert all(same_finding(party.finding, expected) for party in (alice, *others))


def test_only_the_computing_party_runs_the_algorithm(monkeypatch):
    runs = []
    real = algorithm.run_vertical
    monkeypatch.setattr("cloister.protocols.vertical.computing.run_vertical", lambda *a: runs.append(1) or real(*a))
    Session(TABLE, **{**MODELS["threshold"], **TINY}).run()
    assert runs == [1]
    assert not hasattr(holder, "run_vertical")


def test_a_session_without_the_result_does_not_end(monkeypatch):
    """A relay that keeps the last post back: nobody takes totals for a result."""
    session = Session(TABLE, **{**MODELS["two-party"], **TINY})
    real = session.party

    class Kept:
        def __init__(self, party):
            self.party = party

        def __getattr__(self, name):
            return getattr(self.party, name)

        def handle(self, request):
            if isinstance(request, Turn) and session.agreement.schedule[request.stage].kind == "close":
                request = Turn(request.stage, request.members, (), request.letters)
            return self.party.handle(request)

    session.party = lambda number: Kept(real(number)) if number == 2 else real(number)
    with pytest.raises(TooFewPartiesError):
        session.run()
