"""Every check of the roles of Lloyd's rounds, around a coordinator and in a ring, is one that some test needs.

Each mutant is the code with one of them removed; the test that dies of it is named here. Those of the secure sums
beneath: `tests/aggregation/test_mutants.py`.
"""

import pytest

from tests.mutants import Package, kills, name_killers

CHECKERS = {"require_members", "check_agreement", "kind", "_check_round", "_check_box", "check_shares", "require_star"}
PROTOCOLS = Package("cloister.protocols", frozenset(CHECKERS | {"check_votes", "check_sums"}))
ROLES = ("multiparty_lloyd.party", "multiparty_lloyd.coordinator", "serverless.party", "serverless.relay")
KILLED_BY = {
    "multiparty_lloyd.test_noise::test_constraints_and_missing_books_are_refused": (
        "multiparty_lloyd.party.LloydState.__init__: duty is None",
        "multiparty_lloyd.party.LloydState.__init__: agreement.noise.rule.nearest_only and (not isinstance(self._assignment, Unconstrained))",  # noqa: E501
    ),
    "multiparty_lloyd.test_refusals::test_a_round_is_not_answered_after_the_vote": (
        "multiparty_lloyd.party.LloydParty._masked_round: self._voted",
    ),
    "multiparty_lloyd.test_refusals::test_every_lie_is_refused_and_the_true_request_answered": (
        "multiparty_lloyd.party.LloydParty.handle: self._finished",
        "multiparty_lloyd.party.LloydParty._masked_round: not self._answered <= round_ <= self._agreement.iterations or self._voted",  # noqa: E501
        "multiparty_lloyd.party.LloydParty._masked_round: not self._answered <= round_ <= self._agreement.iterations",
        "multiparty_lloyd.party.LloydParty._settle: self._voted",
        "multiparty_lloyd.party.LloydParty._conclude: follower.check_votes(request.votes, masks)",
    ),
    "multiparty_lloyd.test_refusals::test_in_the_clear_rounds_rise_and_centres_are_inside": (
        "multiparty_lloyd.party.LloydParty.centres: not self._finished",
        "multiparty_lloyd.party.LloydParty._naive_round: self._check_round(request.round)",
        "multiparty_lloyd.party.LloydParty._check_round: not self._answered < round_ <= self._agreement.iterations",
        "multiparty_lloyd.party.LloydParty.handle: check_agreement(request, self._agreement.digest)",
    ),
    "multiparty_lloyd.test_refusals::test_in_the_clear_too_few_parties_end_the_session": (
        "multiparty_lloyd.coordinator._coordinate_naive: require_members(len(present), ...)",
        "multiparty_lloyd.coordinator._coordinate_naive: require_members(len(updates), ...)",
    ),
    "multiparty_lloyd.test_refusals::test_in_the_clear_updates_that_no_records_could_give_do_not_count": (
        "multiparty_lloyd.coordinator._check_local_update.check: kind(party, reply)",
        "multiparty_lloyd.coordinator._check_local_update.check: agreement.rule.check_sums(_local_update(reply, agreement))",  # noqa: E501
    ),
    "multiparty_lloyd.test_refusals::test_noise_that_nobody_around_a_coordinator_would_add_seats_nobody": (
        "multiparty_lloyd.party.LloydParty.__init__: agreement.require_star()",
        "multiparty_lloyd.coordinator.coordinate: agreement.require_star()",
        "multiparty_lloyd.coordinator.coordinate: (duty is not None) != (agreement.noise is not None and agreement.noise.by_coordinator)",  # noqa: E501
    ),
    "multiparty_lloyd.test_refusals::test_the_coordinators_first_centres_come_and_are_inside": (
        "multiparty_lloyd.party.LloydParty._received_centres: (np.abs(centres) > 1).any()",
        "multiparty_lloyd.party.LloydParty._start: start is None",
    ),
    "serverless.test_refusals::test_a_contribution_of_another_length_is_our_own_mistake": (
        "serverless.party.RingParty._begin_round: exact_or_noisy.shape != (self._terms.length,)",
    ),
    "serverless.test_refusals::test_a_result_that_too_few_have_voted_for_is_none": (
        "serverless.party.RingParty._conclude: follower.check_votes(request.votes, masks)",
    ),
    "serverless.test_refusals::test_a_vote_ends_the_rounds_also_where_more_are_left": (
        "serverless.party.RingParty.handle: self._finished",
        "serverless.party.RingParty._begin_round: self._voted",
    ),
    "serverless.test_refusals::test_an_unfinished_draw_cannot_be_mixed_with_an_older_attempt": (
        "serverless.party.RingParty._receive_openings: last != (self._openings == self._terms.plan_noise(len(members)).steps)",  # noqa: E501
    ),
    "serverless.test_refusals::test_every_change_of_openings_and_dealt_randomness_is_refused": (
        "serverless.party.RingParty._settle: self._voted",
        "serverless.party.RingParty._receive_openings: [opening.party for opening in request.openings] != [member for member in members if member != self._number]",  # noqa: E501
    ),
    "serverless.test_refusals::test_joint_noise_is_drawn_for_the_round_begun_and_by_who_has_begun_to": (
        "serverless.party.RingParty._draw_noise: self._check_round(request.attempt)",
    ),
    "serverless.test_refusals::test_openings_of_a_wrong_kind_or_length_do_not_count": (
        "serverless.relay._check_box: len(box) != box_bytes",
        "serverless.relay._check_opening.check: kind(party, reply)",
        "serverless.relay._check_opening.check: _check_box(party, reply.box, box_bytes)",
    ),
    "serverless.test_refusals::test_replies_of_a_wrong_kind_or_length_do_not_count": (
        "serverless.relay._Relay._check_passed.check: kind(party, reply)",
        "serverless.relay._Relay._check_passed.check: _check_box(party, reply.box, self._terms.vector_box_bytes)",
        "serverless.relay._Relay._check_passed.check: check_shares(self._terms.sums, party, reply.shares, members)",
    ),
    "serverless.test_refusals::test_requests_out_of_turn_are_refused": (
        "serverless.party.RingParty._begin_round: not self._round < request.round <= self._terms.rounds or self._voted",
        "serverless.party.RingParty._begin_round: not self._round < request.round <= self._terms.rounds",
        "serverless.party.RingParty._check_round: attempt.round != self._round",
        "serverless.party.RingParty._draw_noise: self._terms.joint is None",
        "serverless.party.RingParty._add_vector: request.openings and (not joint)",
    ),
    "serverless.test_refusals::test_who_is_not_the_first_needs_the_sum_so_far_and_who_is_needs_none": (
        "serverless.party.RingParty._read_partial: (box is None) != (place == 0)",
    ),
    "serverless.test_sum::test_too_few_left_is_an_error": (
        "serverless.relay._Relay._stay: require_members(len(self._present), ...)",
    ),
}

MUTANTS = {str(mutant): mutant for mutant in PROTOCOLS.find_checks(*ROLES)}
KILLERS = name_killers(KILLED_BY)


def test_every_mutant_has_a_test_that_kills_it_and_every_name_is_one():
    assert {*KILLERS} == {*MUTANTS}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_dies(name):
    assert kills("tests.protocols", KILLERS[name], MUTANTS[name])
