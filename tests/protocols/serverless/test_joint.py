"""Joint noise in the ring: one draw of discrete Laplace noise on each sum, which no party knows, whoever leaves."""

import itertools

import numpy as np
import pytest
from scipy import stats

from cloister.errors import TooFewPartiesError
from cloister.joint_noise import JointSampler
from cloister.protocols.serverless import party as party_module
from cloister.protocols.serverless.messages import AddVector, DrawNoise, TakeOpenings
from cloister.runtime import Fault, FaultKind
from tests.protocols.serverless.sessions import SumSession, random_vectors

ALPHA = 1e-6


def laplace_pvalue(noise, scale):
    """Chi-square against P[x] ~ exp(-|x| / scale), tails put together where fewer than 10 are expected."""
    ratio = np.exp(-1 / scale)
    edge = int(scale * np.log(len(noise) / 10 * (1 - ratio) / (1 + ratio)))
    inside = (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-edge, edge + 1))
    tail = (1 - inside.sum()) / 2
    expected = np.array([tail, *inside, tail]) * len(noise)
    observed = np.bincount(np.clip(noise, -edge - 1, edge + 1) + edge + 1, minlength=2 * edge + 3)
    return stats.chisquare(observed, expected).pvalue


@pytest.mark.parametrize(("parties", "bits", "scale"), [(2, 32, 1.5), (3, 64, 6.0), (4, 32, 0.5)])
def test_totals_less_plain_sums_follow_the_discrete_laplace_law(parties, bits, scale):
    session = SumSession(random_vectors(parties, 3, 2000, bits=16), bits=bits, scale=scale)
    run, roles = session.run()
    everyone = tuple(range(1, parties + 1))
    noise = np.concatenate([roles[0].contributor.totals[t] - session.sum_of(t, everyone) for t in (1, 2, 3)])
    assert run.steps == session.terms.steps
    assert laplace_pvalue(noise, scale) > ALPHA
    assert laplace_pvalue(noise, scale * 1.25) < ALPHA  # the test can tell
    for role in roles:
        assert all(np.array_equal(role.contributor.totals[t], roles[0].contributor.totals[t]) for t in (1, 2, 3))


def test_the_noise_of_every_round_and_attempt_is_fresh():
    session = SumSession(np.zeros((3, 2, 400), dtype=np.int64), bits=64, scale=50.0)
    _, roles = session.run()
    first, second = (roles[0].contributor.totals[t] for t in (1, 2))
    assert abs(stats.pearsonr(first, second).statistic) < 0.25
    assert (first == second).mean() < 0.05


class Spy(JointSampler):
    """Remembers every sampler that the parties made."""

    made: list["Spy"] = []  # noqa: RUF012

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        Spy.made.append(self)


def test_all_parties_but_one_do_not_know_the_noise(monkeypatch):
    """The shares of any two of three add up to something uniform, unrelated to the noise; all three give the noise."""
    monkeypatch.setattr(party_module, "JointSampler", Spy)
    Spy.made = []
    session = SumSession(random_vectors(3, 1, 3000, bits=16), scale=3.0)
    _, roles = session.run()
    noise = roles[0].contributor.totals[1] - session.sum_of(1, (1, 2, 3))
    shares = [sampler.shares for sampler in Spy.made]
    assert len(shares) == 3
    assert np.array_equal(session.terms.ring.decode(sum(shares)), noise)
    for size in (1, 2):
        for some in itertools.combinations(shares, size):
            known = sum(some)
            assert stats.chisquare(np.bincount(known.view(np.uint8), minlength=256)).pvalue > ALPHA
            table = np.histogram2d(known >> np.uint32(30), np.sign(noise), bins=(4, 3))[0]
            assert stats.chi2_contingency(table).pvalue > ALPHA


def test_openings_reach_parties_only():
    """The relay deals the randomness; an opening in the clear would show it the noise."""
    session = SumSession(random_vectors(3, 1, 50, bits=16), scale=3.0)
    run, roles = session.run(record_views=True)
    opened = []
    for role in roles:
        for request, _ in role.log:
            if isinstance(request, TakeOpenings | AddVector):
                step = len(
                    [r for r, _ in role.log[: role.log.index((request, _))] if isinstance(r, DrawNoise | TakeOpenings)]
                )
                opened += [
                    role.masks.open(p.box, "noise", request.attempt, sender=p.party, detail=step - 1)
                    for p in request.openings
                ]
    assert len(opened) == 6 * session.terms.plan_noise(3).steps
    carried = b"".join(entry.message.box for entry in run.views[0] if hasattr(entry.message, "box"))
    assert not any(opening[:24] in carried for opening in opened)


@pytest.mark.parametrize("kind", [FaultKind.CRASH, FaultKind.DELAY_REPLY])
def test_any_dropout_at_any_step_leaves_one_draw_of_noise_on_the_exact_sum(kind):
    vectors = 10**6 * 10 ** np.arange(3)[:, None, None] * np.ones((3, 1, 2), dtype=np.int64)  # a digit 2: counted twice
    session = SumSession(vectors, bits=64, scale=2.0)
    attempts = set()
    for party, step in itertools.product((1, 2, 3), range(session.terms.steps)):
        try:
            run, roles = session.run(faults=[Fault(kind, party, step)])
        except TooFewPartiesError:
            assert step > session.terms.steps - 3 - 3  # whoever leaves after it has added ends the session
            continue
        attempts.add(run.result.attempts)
        for role in roles:
            if role.party.finished:
                assert (np.abs(role.contributor.totals[1] - session.sum_of(1, run.result.members[0])) < 200).all()
                assert role.contributor.contributed in ([1], [])
    assert attempts == {(1,), (2,)}


def test_two_parties_cannot_lose_one():
    session = SumSession(random_vectors(2, 1, bits=16), bits=64, scale=2.0)
    with pytest.raises(TooFewPartiesError):
        session.run(faults=[Fault(FaultKind.CRASH, 1, 6)])
