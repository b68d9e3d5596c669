"""A private job end to end: the card says what ran, ledgers add up over jobs, and bad budgets are refused first."""

import io
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from cloister.errors import BudgetError, ConfigError, DataError, PrecisionError
from cloister.job import Budget, DataOptions, JobParty, OwnSide, Setup, noise_options
from cloister.privacy.ledger import Ledger
from cloister.report import read_result, write_result
from cloister.report.layout import make_console
from cloister.report.text import print_report
from cloister.sessions import simulate
from tests.owners import told_to_owner
from tests.protocols.multiparty_lloyd.test_job import COLUMNS, PARTS, make_job


def private_job(**options):
    protocol = {"name": "mask-noise-average", **options.pop("protocol", {})}
    return make_job(protocol=protocol, **{"budget": Budget(epsilon=2.0, delta=1e-6), **options})


def test_the_card_says_what_ran_and_travels_with_the_result(tmp_path):
    result = simulate(private_job(), sources=PARTS, evaluate=True)
    card = result.card
    assert card.private
    assert simulate(private_job(), sources=PARTS).evaluation is None, "an exact loss only where it is asked for"
    assert 1.98 < card.epsilon <= 2.0
    assert (card.unit, card.neighbours, card.delta) == ("record", "one record added or removed", 1e-6)
    assert [release.name for release in card.releases][:1] == ["round 1: sums and counts of 3 clusters"]
    assert len(card.releases) == 5
    assert sum(release.rho for release in card.releases) == pytest.approx(card.releases[0].rho * 5)
    assert card.plain_words.startswith("Whatever someone does with this result, it is at most 7.3")
    assert "Each of the 3 parties adds a share; any 2 of them" in card.who_adds_noise
    assert card.breaks_if.startswith("Two or more colluding parties, with the coordinator or without")
    assert card.breaks_if == result.breaks_if
    read = read_result(write_result(result, tmp_path / "r"))
    assert read.card == card
    assert result.evaluation is not None
    assert read.evaluation is None  # exact losses beside a promise of privacy would break it
    assert b"who_could_subtract" in msgspec.json.encode(card)


def test_the_printed_card_has_plain_words_before_numbers():
    out = io.StringIO()
    print_report(simulate(private_job(), sources=PARTS), make_console(out))
    text = out.getvalue()
    assert text.index("Whatever someone does") < text.index("epsilon  ") < text.index("sum of 2 discrete")
    assert "Not promised" in text
    assert "nothing here is differentially private" not in text


@pytest.mark.parametrize(
    ("options", "parties", "warned"),
    [({}, 3, False), ({"placement": "aggregator"}, 3, True), ({}, 4, True), ({"placement": "shared"}, 4, False)],
)
def test_a_run_warns_where_the_coordinator_adds_the_noise_as_it_does_for_many(options, parties, warned, monkeypatch):
    monkeypatch.setattr(noise_options, "PADS_MOST", 3)
    tables = {f"p{number}": PARTS["a"] for number in range(parties)}
    job = private_job(protocol={"iterations": 1, **options}, parties=tuple(JobParty(name=name) for name in tables))
    result, out = simulate(job, sources=tables, evaluate=False), io.StringIO()
    print_report(result, make_console(out))
    words = "WARNING: The coordinator adds the noise and knows it: the result must never reach the coordinator"
    assert (words in " ".join(out.getvalue().split())) is warned
    assert ("once, to the masked sum" in result.card.who_adds_noise) is warned


def test_a_seeded_run_says_that_it_protects_nobody():
    first, again = (simulate(private_job(), seed=5, sources=PARTS) for _ in range(2))
    assert not first.card.private
    assert first.card.plain_words.startswith("A study")
    assert "seed" in first.card.warnings[0]
    assert first.transcript_sha256 == again.transcript_sha256
    assert np.array_equal(first.centres, again.centres)
    fresh = simulate(private_job(), sources=PARTS)
    assert not np.array_equal(fresh.centres, first.centres)


def test_secure_mode_refuses_a_seed_before_anything_runs():
    with pytest.raises(ConfigError, match=r"run\.seed must be left out in secure mode"):
        Setup(job=private_job(), seed=5, secure=True)
    assert simulate(Setup(job=private_job(), secure=True), sources=PARTS).card.private


@pytest.mark.parametrize(
    ("options", "placed"),
    [
        ({"placement": "shared", "colluding_max": 1, "min_parties": 3}, "adds a share"),
        ({"placement": "local"}, "parties"),
        ({"placement": "aggregator"}, "once"),
        ({"noise": "laplace"}, "adds a share"),
        ({"norm_bound": 0.8}, "adds a share"),
    ],
)
def test_every_option_of_the_noise_runs_from_a_job(options, placed):
    result = simulate(private_job(protocol=options, budget=Budget(epsilon=8.0, delta=1e-6)), sources=PARTS)
    assert placed in result.card.who_adds_noise
    assert result.card.epsilon <= 8.0
    assert np.isfinite(result.centres).all()
    assert ("No coalition" in result.breaks_if) is (options.get("placement") == "local")
    assert ("The coordinator, once it sees" in result.breaks_if) is (options.get("placement") == "aggregator")


def test_pure_epsilon_with_laplace_noise():
    job = private_job(protocol={"noise": "laplace"}, budget=Budget(epsilon=4.0, delta=0.0))
    card = simulate(job, sources=PARTS).card
    assert card.delta == 0
    assert 3.99 < card.epsilon <= 4.0
    assert "pure" in card.how_composed
    assert "but for a chance" not in card.plain_words


def test_a_large_delta_is_warned_about():
    warned = simulate(private_job(budget=Budget(epsilon=2.0, delta=0.1)), sources=PARTS).card
    assert any("publishes one record at random" in warning for warning in warned.warnings)
    card = simulate(private_job(), sources=PARTS).card  # its centres may be mostly noise, or not
    assert not any("publishes one record at random" in warning for warning in card.warnings)


def with_ledgers(job, folder, **own):
    sides = {party.name: OwnSide(ledger=folder / "books" / f"{party.name}.ledger", **own) for party in job.parties}
    return Setup(job=job, own=sides)


def test_each_party_keeps_a_ledger_and_jobs_add_up(tmp_path):
    for count in (1, 2):
        simulate(with_ledgers(private_job(), tmp_path), sources=PARTS)
        for party in PARTS:
            (entry,) = Ledger(tmp_path / "books" / f"{party}.ledger", create=False).summarise(delta=1e-6)
            assert entry.charges == 5 * count


def test_a_job_that_would_pass_a_cap_is_refused_before_the_first_round(tmp_path):
    simulate(with_ledgers(private_job(), tmp_path), sources=PARTS)
    ledger = Ledger(tmp_path / "books" / "b.ledger", create=False)
    (entry,) = ledger.summarise(delta=1e-6)
    ledger.set_cap(entry.dataset, Budget(epsilon=2.5, delta=1e-6), reason="test")
    steps = []
    with told_to_owner(BudgetError, party="b") as caught:
        simulate(with_ledgers(private_job(), tmp_path), sources=PARTS, on_progress=steps.append)
    assert steps == []
    said = str(caught.value.why)
    assert "2.5" in said
    assert said.startswith(f"party 'b' ({tmp_path / 'books' / 'b.ledger'}): ")
    (after,) = ledger.summarise(delta=1e-6)
    assert after.charges == entry.charges
    fewer = {**PARTS, "b": PARTS["b"][::-1][:-1]}
    with told_to_owner(BudgetError) as refused:
        simulate(with_ledgers(private_job(), tmp_path), sources=fewer)
    assert str(refused.value.why) == said, "a refusal must not tell whether the table is an earlier one"
    wider = private_job(columns=tuple(replace(column, high=column.high + 1) for column in COLUMNS))
    with told_to_owner(BudgetError):  # and under other bounds
        simulate(with_ledgers(wider, tmp_path), sources=PARTS)


def test_a_ledger_path_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "books").write_text("")
    with told_to_owner(ConfigError, "ledgers must be kept in a folder"):
        simulate(with_ledgers(private_job(), tmp_path), sources=PARTS)


def test_a_named_data_set_stays_under_one_cap_while_it_grows(tmp_path):
    named = with_ledgers(private_job(), tmp_path, dataset="patients")
    simulate(named, sources=PARTS)
    simulate(named, sources={**PARTS, "a": PARTS["a"][:-5]})
    (entry,) = Ledger(tmp_path / "books" / "a.ledger", create=False).summarise(delta=1e-6)
    assert entry.charges == 10


def test_a_file_that_is_swapped_after_its_check_does_not_run(tmp_path):
    """The fingerprint and the run must see the same records, or another file would pay for these."""
    path = tmp_path / "a.csv"
    frame = "length,width\n" + "\n".join(f"{x:.6f},{y:.6f}" for x, y in PARTS["a"])
    path.write_text(frame)

    def swap(party, check):
        if party == "a":
            path.write_text("length,width\n1,1\n")

    with told_to_owner(DataError, "must stay the same", party="a"):
        simulate(with_ledgers(private_job(), tmp_path), sources={**PARTS, "a": path}, on_table=swap)


def test_a_private_run_does_not_abort_by_the_number_of_records():
    """An abort would tell neighbours apart; a sum that wraps around costs accuracy only."""
    job = private_job(data=DataOptions(max_records=79))
    assert simulate(job, sources=PARTS).card.private


def test_noise_that_cannot_be_drawn_is_refused_before_anything_is_charged(tmp_path):
    job = private_job(
        protocol={"fractional_bits": 30},
        budget=Budget(epsilon=5e-4, delta=1e-6),
        data=DataOptions(max_records=1000),
    )
    with pytest.raises(PrecisionError, match="scale of noise"):
        simulate(with_ledgers(job, tmp_path), sources=PARTS)
    assert not (tmp_path / "books").exists()


def test_a_result_that_is_mostly_noise_says_so():
    warned = simulate(private_job(budget=Budget(epsilon=0.01, delta=1e-6)), sources=PARTS).card
    assert any("mostly noise" in warning for warning in warned.warnings)
    clear = simulate(private_job(budget=Budget(epsilon=50.0, delta=1e-6)), sources=PARTS).card
    assert not any("mostly noise" in warning for warning in clear.warnings)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-7, 1e7, 1e300])
def test_senseless_epsilons_are_refused_at_once(epsilon):
    with pytest.raises(ConfigError, match=r"epsilon must lie between 1e-06 and 1e\+06"):
        private_job(budget=Budget(epsilon=epsilon, delta=1e-6))


def test_a_ledger_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with told_to_owner(ConfigError, "ledgers must be kept in a folder"):
        simulate(with_ledgers(private_job(), tmp_path / "file"), sources=PARTS)
