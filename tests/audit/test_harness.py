"""The audit as a whole: coverage with the search included, determinism, progress, refusals, the report's words."""

import math

import numpy as np
import pytest
from scipy import stats

from cloister.audit import Attack, Claim, Neighbour, audit
from cloister.audit.bounds import epsilon_lower_bound
from cloister.audit.events import choose_event
from cloister.audit.statistics import fit_statistics
from cloister.crypto import Stream
from cloister.errors import ConfigError, LocalProtocolError

EPSILON = 1.0


def laplace(which, runs, stream, entries=3):
    """A discrete Laplace release of one count among noise: exactly EPSILON."""
    keep = 1 - math.exp(-EPSILON)
    geometric = np.floor(np.log1p(-stream.uniform(2, runs, entries)) / math.log1p(-keep)).astype(np.int64)
    noise = geometric[0] - geometric[1]
    noise[:, 0] += which is Neighbour.WITH
    return noise


ATTACK = Attack(name="one more in the count", run=laplace)
CLAIM = Claim(epsilon=EPSILON, delta=0.0)


class TestCoverage:
    """The search over statistics and thresholds must not spoil the confidence."""

    CONFIDENCE = 0.8
    REPETITIONS = 60
    ALLOWED = stats.binom.isf(1e-6, 60, 1 - 0.8) / 60

    def test_the_bound_exceeds_the_truth_no_more_often_than_stated(self):
        bounds = [
            audit(
                ATTACK, claim=CLAIM, runs=800, confidence=self.CONFIDENCE, stream=Stream.from_seed(seed, "coverage")
            ).epsilon_lower
            for seed in range(self.REPETITIONS)
        ]
        assert np.mean(np.array(bounds) > EPSILON) <= self.ALLOWED
        assert np.median(bounds) > 0.3 * EPSILON

    def test_an_auditor_who_peeks_is_wrong_far_more_often(self):
        """The mutant: the best of all events on the counted runs themselves."""
        bounds = []
        for seed in range(self.REPETITIONS):
            stream = Stream.from_seed(seed, "coverage")
            without, present = (laplace(side, 400, stream.child(side.value), entries=12) for side in Neighbour)
            statistics = fit_statistics(without, present)
            event = choose_event(
                statistics, without, present, claim=CLAIM, counted_runs=10**7, confidence=self.CONFIDENCE
            )
            hits = {Neighbour.WITHOUT: event.hits(without), Neighbour.WITH: event.hits(present)}
            counts = event.counts(hits=hits, runs=400)
            p, q = counts.hits_likelier / 400, max(counts.hits_other, 1) / 400
            peeked = math.log(p / q) if p > q else 0.0
            bounds.append(max(peeked, epsilon_lower_bound(counts, delta=0, confidence=self.CONFIDENCE)))
        assert np.mean(np.array(bounds) > EPSILON) > self.ALLOWED


class TestAudit:
    def test_a_seed_names_the_report(self):
        first, again, other = (
            audit(ATTACK, claim=CLAIM, runs=2000, stream=Stream.from_seed(seed, "report")) for seed in (1, 1, 2)
        )
        assert first == again
        assert first.counts != other.counts

    def test_counted_runs_are_fresh(self):
        """No stage and no input shares a stream with another."""
        seen = []

        def run(which, runs, stream):
            seen.append(stream.child("fingerprint").bytes(16))
            return laplace(which, runs, stream)

        audit(Attack(name="a", run=run), claim=CLAIM, runs=2000, stream=Stream.from_seed(1, "fresh"))
        assert len(seen) == len(set(seen)) >= 6

    def test_runs_are_split_in_halves(self):
        report = audit(ATTACK, claim=CLAIM, runs=2001, stream=Stream.from_seed(1, "halves"))
        assert report.training_runs == 1000
        assert report.counts.runs_likelier == report.counts.runs_other == 1001

    def test_the_best_of_several_attacks_is_counted(self):
        blind = Attack(name="no difference", run=lambda which, runs, stream: laplace(Neighbour.WITH, runs, stream))
        report = audit((blind, ATTACK, blind), claim=CLAIM, runs=4000, stream=Stream.from_seed(1, "several"))
        assert report.attack == ATTACK.name
        assert report.epsilon_lower > 0.3

    def test_progress_names_the_stage_and_ends_at_all_runs(self):
        told = []
        audit(
            ATTACK,
            claim=CLAIM,
            runs=2000,
            stream=Stream.from_seed(1, "progress"),
            on_progress=lambda *line: told.append(line),
        )
        assert {label.split(": ")[1].split(",")[0] for label, _, _ in told} == {"fit", "choose", "count"}
        assert told[-1][1:] == (4000, 4000)
        assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)

    def test_a_hundred_thousand_runs_take_seconds_not_minutes(self):
        report = audit(ATTACK, claim=CLAIM, runs=100_000, stream=Stream.from_seed(1, "speed"))
        assert 0.8 < report.epsilon_lower <= EPSILON


class TestReport:
    def report(self, claim):
        return audit(ATTACK, claim=claim, runs=20_000, stream=Stream.from_seed(4, "words"))

    def test_a_true_claim_reads_as_consistent_and_not_as_proved(self):
        report = self.report(CLAIM)
        assert report.verdict == "is consistent with the claim"
        assert "no proof" in report.text()
        assert "rho" not in report.text()

    def test_a_false_epsilon_is_named(self):
        report = self.report(Claim(epsilon=0.3, delta=0))
        assert report.refutes_epsilon
        assert report.verdict == "VIOLATES the claim"
        assert f"at least {report.epsilon_lower:.4g}, claimed 0.3" in report.text()

    def test_a_false_rho_is_named_even_where_epsilon_stands(self):
        report = self.report(Claim(epsilon=5.0, delta=1e-5, rho=0.01))
        assert report.refutes_rho
        assert not report.refutes_epsilon
        assert "nothing supports its epsilon" in report.text()
        assert "an estimate" in report.text()


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"runs": 100}, "at least 400"),
            ({"confidence": 1.0}, "confidence"),
            ({"attacks": ()}, "at least one attack"),
        ],
    )
    def test_bad_arguments(self, change, words):
        arguments = {"attacks": ATTACK, "claim": CLAIM, "stream": Stream.from_seed(1, "bad"), **change}
        with pytest.raises(ConfigError, match=words):
            audit(arguments.pop("attacks"), **arguments)

    @pytest.mark.parametrize("bad", [{"epsilon": 0}, {"epsilon": math.inf}, {"delta": 1}, {"delta": -1}, {"rho": 0}])
    def test_bad_claims(self, bad):
        with pytest.raises(ConfigError, match="claimed"):
            Claim(**{"epsilon": 1.0, "delta": 0.0, **bad})

    def test_a_mechanism_that_changes_shape(self):
        def run(which, runs, stream):
            return np.zeros((runs, 2 if which is Neighbour.WITH else 3))

        with pytest.raises(LocalProtocolError, match="in every run"):
            audit(Attack(name="a", run=run), claim=CLAIM, runs=400, stream=Stream.from_seed(1, "shape"))
