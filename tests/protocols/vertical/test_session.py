"""A session decrypts to what the algorithm finds in the clear, to the last digit, for every model; the books."""

import numpy as np
import pytest

from cloister.errors import LocalProtocolError, TooFewPartiesError
from cloister.privacy.calibration import rho_for
from cloister.privacy.costs import rho_of
from cloister.privacy.units import Learns
from cloister.protocols.vertical import agreement as agreement_module
from cloister.protocols.vertical.leakage import describe_leakage
from cloister.protocols.vertical.noise import ChargedFlood
from cloister.protocols.vertical.query import LloydQuery
from cloister.runtime import Fault, FaultKind
from tests.protocols.vertical.sessions import BUDGET, CASES, Session, list_steps, make_case, run_case, same_finding
from tests.protocols.vertical.tables import mixture


def cluster_by_cells(completed):
    """Lloyd's algorithm in which encrypted columns decide by their cell's representative; written out anew."""
    settings, codebooks = completed.session.settings, completed.alice.codebooks
    layout, units = settings.layout, settings.units
    first = next(query for query in completed.queries() if isinstance(query, LloydQuery))
    table = layout.to_session(completed.session.table)
    columns = layout.alice_count
    seen, counted, at = table.copy(), np.rint(table * units), columns
    for holder in codebooks.holders:
        own = slice(at, at + holder.columns)
        gaps = ((table[:, None, own] - holder.reps) ** 2).sum(axis=2)
        seen[:, own] = holder.reps[gaps.argmin(axis=1)]
        at += holder.columns
    if not settings.has_residuals:
        counted[:, columns:] = seen[:, columns:] * units
    centres = first.centres.copy()
    for _ in range(settings.rounds_made):
        labels = ((seen[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        for i in set(labels.tolist()):
            centres[i] = counted[labels == i].sum(axis=0) / units / (labels == i).sum()
    return layout.to_job(centres)


@pytest.mark.parametrize("name", CASES)
def test_without_a_budget_every_total_is_exact_and_the_centres_are_lloyds(name):
    completed = run_case(name, exact=True)
    assert len(completed.totals) == len(completed.session.agreement.queries)
    for total, exact in zip(completed.totals, completed.exact_totals(), strict=True):
        assert np.array_equal(total, exact)
    for party in completed.parties:
        assert np.array_equal(party.centres, cluster_by_cells(completed))
        assert party.finding.sizes.total == len(completed.session.table)


@pytest.mark.parametrize("name", CASES)
def test_with_a_budget_it_is_the_rehearsal_with_the_same_noise(name):
    completed = run_case(name)
    rehearsal = completed.rehearse()
    assert all(np.array_equal(a, b) for a, b in zip(completed.totals, rehearsal.totals, strict=True))
    for total, exact in zip(completed.totals, completed.exact_totals(), strict=True):
        assert not np.array_equal(total, exact)
    for party in completed.parties:
        assert party.finished
        assert same_finding(party.finding, rehearsal.finding)
        assert all(np.array_equal(a, b) for a, b in zip(party.released_totals, completed.totals, strict=True))


def test_the_cases_are_what_they_are_called():
    agreements = {name: run_case(name).session.agreement for name in CASES}
    assert agreements["two blocks, far start"].blocks == 3
    assert run_case("two blocks, far start", exact=True).session.agreement.blocks == 2
    assert agreements["two clusters"].settings.records < agreements["two clusters"].block_records
    assert {agreement.model for agreement in agreements.values()} == {"two-party", "server-aided", "collective"}
    assert sum(isinstance(agreement.flood, ChargedFlood) for agreement in agreements.values()) == 6
    assert {len(agreement.encrypted) for agreement in agreements.values() if agreement.is_joint} == {2, 3}
    assert run_case("residuals").session.settings.has_residuals


def test_several_uploads_are_one_upload_cut(monkeypatch):
    table = mixture(4500, 2, 3, seed=3)
    options = {"cells": 4, "start": "random", "rounds": 1}
    whole = Session(table, **options)
    assert whole.agreement.uploads == 1
    expected = whole.run()
    monkeypatch.setattr(agreement_module, "_UPLOAD_BYTES", 1)
    cut = Session(table, **options)
    assert cut.agreement.uploads == cut.agreement.blocks == 3
    assert np.array_equal(cut.run().alice.centres, expected.alice.centres)


def test_a_seed_repeats_a_session_and_threads_do_not_change_it():
    runs = [make_case("collective").run(threads=threads) for threads in (1, 3)]
    assert len({completed.run.transcript_sha256 for completed in runs}) == 1
    other = make_case("collective", seed=8).run()
    assert other.run.transcript_sha256 != runs[0].run.transcript_sha256


# --- the books ---------------------------------------------------------------------------------------------------


def expected_charges(completed, number):
    """What a party must be charged for: its codebook, every pass that it adds noise to, and Alice for her flood."""
    agreement, settings = completed.session.agreement, completed.session.settings
    own = completed.parties[number - 1]._own_codebook
    expected = [] if own is None else list(own.releases)
    for query, decryptors in zip(completed.queries(), completed.run.result.decryptors, strict=True):
        if number == agreement.computing or number in decryptors:
            expected += [part.release(settings) for part in query.parts]
        if number == agreement.computing and isinstance(agreement.flood, ChargedFlood):
            expected.append(agreement.flood.price(query))
    return expected


@pytest.mark.parametrize("name", CASES)
def test_every_party_is_charged_for_what_it_had_a_part_in_and_all_of_it_fits_the_budget(name):
    completed = run_case(name)
    for number in completed.session.numbers:
        assert list(completed.session.releases(number)) == expected_charges(completed, number)
        assert completed.session.duties[number].charger.spent().epsilon <= BUDGET.epsilon
    # Each codebook is one party's, passes and floods are everyone's: all of them together are within the budget.
    assert sum(map(rho_of, list_all_releases(completed))) <= rho_for(BUDGET)


def list_all_releases(completed):
    """All releases of a session once: those of each codebook, of each pass, of each flood."""
    own = [release for party in completed.parties if party._own_codebook for release in party._own_codebook.releases]
    computing = completed.session.agreement.computing
    start = len(completed.alice._own_codebook.releases)
    return own + list(completed.session.releases(computing))[start:]


@pytest.mark.parametrize("name", ["two clusters", "residuals", "many clusters", "collective"])
def test_the_budget_is_nearly_spent_by_what_runs(name):
    assert sum(map(rho_of, list_all_releases(run_case(name)))) > 0.8 * rho_for(BUDGET)


def test_every_draw_of_noise_was_charged_first_and_has_the_charged_mechanism():
    for name in CASES:
        completed = run_case(name)
        settings = completed.session.settings
        for number in completed.session.numbers:
            agreement = completed.session.agreement
            passes = [
                query
                for query, decryptors in zip(completed.queries(), completed.run.result.decryptors, strict=True)
                if number == agreement.computing or number in decryptors
            ]
            for query, shares in zip(passes, completed.shares_of(number), strict=True):
                assert [mechanism for mechanism, _ in shares] == [settings.share_of(part.sigma) for part in query.parts]


@pytest.mark.parametrize("party", [1, 2])
def test_after_an_abort_what_was_released_is_charged_and_nothing_else_was_drawn(party):
    whole = run_case("two clusters")
    for step in list_steps(whole.session.agreement, party):
        session = make_case("two clusters")
        with pytest.raises(TooFewPartiesError):
            session.run(faults=[Fault(FaultKind.CRASH, party, step)])
        for number in (1, 2):
            charged, all_of_them = session.releases(number), whole.session.releases(number)
            assert charged == all_of_them[: len(charged)]
            assert len(session.duties[number].sampler.drawn) == len(charged)


# --- the leakage table -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_the_table_says_what_the_roles_have_in_the_end(name, exact):
    completed = run_case(name, exact=exact)
    table = describe_leakage(completed.session.agreement)
    assert {row.learns for row in table.rows if row.role == "coordinator"} == {Learns.NOTHING}
    released = Learns.EXACT if exact else Learns.NOISY
    assert table.learns("party", "totals") is table.learns("party", "codebooks") is released
    assert table.learns("party", "sums") is (Learns.EXACT if exact else Learns.NOTHING)
    assert table.learns("party", "columns") is Learns.OWN
    for party in completed.parties:
        assert party._columns.shape[1] == len(completed.session.columns[party.number - 1])
        same = [np.array_equal(a, b) for a, b in zip(party.released_totals, completed.exact_totals(), strict=True)]
        assert all(same) if exact else not any(same)


def test_who_breaks_it_is_said_for_each_model():
    def breaks(name, **options):
        return describe_leakage(make_case(name, **options).agreement).breaks_if

    assert breaks("two clusters").startswith("Two parties: there is nobody to collude with")
    assert breaks("server-aided").startswith("The computing party and the key holder together")
    assert breaks("collective").startswith("To read columns takes all parties together")
    assert "and any 2 key holders together" in breaks("threshold")
    assert "their noise" not in breaks("threshold", exact=True)


# --- what a party refuses of its own program ---------------------------------------------------------------------


def test_a_party_with_other_records_or_without_books_is_refused():
    session = make_case("two clusters")
    session.inputs = session.split(session.table[1:])
    with pytest.raises(LocalProtocolError, match="all 300 aligned records; it brings 299"):
        session.party(1)
    session = make_case("two clusters")
    session.duties[1] = None
    with pytest.raises(LocalProtocolError, match="books if and only if there is a budget"):
        session.party(1)


def test_nothing_is_found_before_the_end():
    party = make_case("two clusters").party(1)
    assert party.released_totals == ()
    with pytest.raises(LocalProtocolError, match="must be finished"):
        _ = party.centres
