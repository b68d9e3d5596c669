"""Every check, and every element that a box, a key or a statement is bound to, is one that some test needs.

Each mutant is the code with one of them removed; the test that dies of it is named here. A check that is added to
`cloister.aggregation` without such a test fails below.
"""

import pytest

from tests.aggregation.mutants import MODULES, SUMS, find_rules
from tests.mutants import kills, name_killers

KILLED_BY = {
    "test_collusion::test_a_later_attempt_asks_the_same_question_on_the_same_vector": (
        "double_masks.DoubleMasks.answer: self.check(attempt, place)",
        "double_masks.rule: vector kept",
    ),
    "test_collusion::test_what_is_readable_is_the_plain_sum_of_one_attempt": (
        "double_masks.rule: pads",
        "double_masks.rule: own mask",
    ),
    "test_collusion::test_whatever_the_coalition_asks_it_reads_one_sum_over_the_quorum_at_most": (
        "double_masks.DoubleMasks.check: closed",
        "double_masks.rule: opened once",
        "own_masks.rule: fresh secret",
        "terms.rule: a threshold above those that may collude",
    ),
    "test_collusion::test_without_the_quorum_two_sums_are_opened": (
        "terms.SumTerms.__post_init__: self.masks == 'double' and (not least <= self.members_min <= self.parties)",
        "terms.rule: 2q > n + t",
    ),
    "test_common_masks::test_a_round_is_answered_once_and_in_one_attempt": (
        "common_masks.CommonMasks.check: attempt.round <= self._answered or attempt.number != 1 or attempt.members",
        "common_masks.CommonMasks.check: attempt.round <= self._answered",
        "common_masks.CommonMasks.check: attempt.number != 1",
        "common_masks.CommonMasks.check: attempt.members",
        "common_masks.CommonMasks.answer: self.check(attempt, place)",
        "common_masks.rule: one answer a round",
    ),
    "test_common_masks::test_only_a_total_over_a_quorum_with_nothing_to_open_is_read": (
        "common_masks.CommonMasks.read: len(members) < terms.members_min or attempt.number != 1 or total.openings or total.restored",  # noqa: E501
        "common_masks.CommonMasks.read: len(members) < terms.members_min",
        "common_masks.CommonMasks.read: attempt.number != 1",
        "common_masks.CommonMasks.read: total.openings",
        "common_masks.CommonMasks.read: total.restored",
        "common_masks.rule: mask",
    ),
    "test_coordination::test_replies_of_a_wrong_kind_or_length_do_not_count": (
        "coordination.check_shares: [share.party for share in shares] != others or {len(s.box) for s in shares} - {SHARE_BYTES + TAG_BYTES}",  # noqa: E501
        "coordination.check_shares: [share.party for share in shares] != others",
        "coordination.check_shares: {len(s.box) for s in shares} - {SHARE_BYTES + TAG_BYTES}",
        "coordination._check_voted: not isinstance(reply, Voted) or len(reply.box) != VOTE_BYTES",
        "coordination._check_voted: not isinstance(reply, Voted)",
        "coordination._check_voted: len(reply.box) != VOTE_BYTES",
        "coordination._check_answer.check: kind(party, reply)",
        "coordination._check_answer.check: read_words(reply.vector, terms.ring, length + terms.check_words)",
        "coordination._check_answer.check: check_shares(terms, party, reply.shares, members)",
        "coordination._check_opened.check: kind(party, reply)",
        "coordination._check_opened.check: (len(reply.box), len(reply.vote)) != (OPENING_BYTES, vote_bytes)",
        "coordination._check_opened.check: len(reply.box)",
        "coordination._check_opened.check: len(reply.vote)",
    ),
    "test_coordination::test_shares_of_a_wrong_kind_or_number_do_not_count": (
        "coordination._check_restored.check: kind(party, reply)",
        "coordination._check_restored.check: len(reply.box) != silent * SHARE_BYTES + TAG_BYTES",
    ),
    "test_coordination::test_the_next_link_follows_from_every_entry_of_the_total": (
        "statements.extend_link: without statement",
        "statements.extend_link: without write_words(total)",
    ),
    "test_coordination::test_too_few_parties_end_a_session_wherever_they_leave": (
        "coordination.sum_round: require_members(len(answered), terms.members_min, terms.parties)",
        "coordination.settle: require_members(len(voted), terms.members_min, terms.parties)",
    ),
    "test_dropouts::test_whoever_leaves_at_whatever_step_the_sum_is_exact_or_nothing_is_read": (
        "coordination.sum_round: require_members(len(members), terms.members_min, terms.parties)",
        "coordination.open_round: len(opened) < needed",
        "coordination.open_round: len(restored) < terms.restorers",
    ),
    "test_follower::test_every_sum_is_taken_once_and_in_order": (
        "follower.Follower.take: first > self.taken + 1 or [total.attempt.round for total in news] != list(range(first, upto + 1))",  # noqa: E501
        "follower.Follower.take: first > self.taken + 1",
        "follower.Follower.take: [total.attempt.round for total in news] != list(range(first, upto + 1))",
        "follower.rule: a branch of its own",
        "coordination.rule: late members left out",
    ),
    "test_follower::test_the_next_place_follows_from_every_sum_and_from_the_agreement": (
        "statements.read_checked: not np.array_equal(total[-words:], expected)",
        "statements.start_link: without session",
        "statements.start_link: without agreement",
        "follower.rule: link of the next round",
    ),
    "test_follower::test_votes_for_something_else_do_not_count": (
        "follower.Follower.check_votes: alike < self._terms.members_min",
        "follower.rule: link in a vote",
        "follower.rule: subject in a vote",
        "follower.rule: purpose in a vote",
    ),
    "test_follower::test_votes_that_are_too_few_or_twice_or_of_another_are_refused": (
        "follower.Follower.check_votes: len(voters) < self._terms.members_min",
        "follower.rule: session around a vote",
        "follower.rule: sender of a vote",
    ),
    "test_insider::test_a_member_that_deals_a_share_of_a_wrong_length_is_named": (
        "own_masks.ShareBoxes.open: len(share) != SHARE_BYTES",
    ),
    "test_insider::test_a_party_that_has_entered_nothing_answers_and_opens_nothing": (
        "double_masks.DoubleMasks._require: entered is None or self._progress != progress or attempt not in (None, entered.attempt)",  # noqa: E501
        "double_masks.DoubleMasks._require: entered is None",
    ),
    "test_insider::test_a_statement_is_of_one_session_attempt_and_place": (
        "statements.state_attempt: without session",
        "statements.state_attempt: without place.link",
        "statements.state_attempt: without attempt.round",
        "statements.state_attempt: without attempt.number",
        "statements.state_attempt: without attempt.members",
        "statements.state_attempt: without place.subject",
    ),
    "test_insider::test_a_sum_with_parties_that_were_not_introduced_is_neither_answered_nor_read": (
        "double_masks.DoubleMasks._read_members: len(members) < self._terms.members_min or not self._known.issuperset(members)",  # noqa: E501
        "double_masks.DoubleMasks._read_members: not self._known.issuperset(members)",
    ),
    "test_insider::test_another_total_with_forged_openings_is_refused_by_whoever_opened_one": (
        "double_masks.DoubleMasks.read: last is not None and opened and ((attempt, digest) != (last.attempt, last.opened_digest))",  # noqa: E501
        "double_masks.DoubleMasks.read: digest",
        "double_masks.rule: digest kept",
    ),
    "test_insider::test_check_words_follow_from_the_seed_and_the_statement": (
        "statements.rule: check words of a statement",
        "statements.rule: check words of a seed",
    ),
    "test_insider::test_entropy_that_repeats_opens_no_other_statement": (
        "own_masks.derive_mask_key: without statement",
    ),
    "test_insider::test_every_box_has_a_context_of_its_own": (
        "double_masks.context: without self._seat.session",
        "double_masks.context: without purpose",
        "double_masks.context: without attempt.round",
        "double_masks.context: without attempt.number",
        "double_masks.context: without attempt.members",
        "double_masks.context: without sender",
        "double_masks.context: without detail",
        "own_masks._context: without self._session",
        "own_masks._context: without attempt.round",
        "own_masks._context: without attempt.number",
        "own_masks._context: without attempt.members",
        "own_masks._context: without sender",
    ),
    "test_insider::test_keys_and_shares_of_a_wrong_length_are_typed_errors": (
        "double_masks.DoubleMasks._collect_keys: any((len(key) != SECRET_BYTES for key in keys))",
        "double_masks.DoubleMasks._combine: any((len(shares) != len(silent) for shares in cuts.values()))",
    ),
    "test_insider::test_nobody_votes_in_the_name_of_others": (
        "double_masks.DoubleMasks._restore: self._check_votes(request.votes, entered)",
        "double_masks.DoubleMasks._check_votes: not is_signed(signature, identity, _VOTE, entered.statement)",
        "double_masks.rule: purpose in an opener's signature",
        "double_masks.rule: statement in an opener's signature",
    ),
    "test_insider::test_pads_and_masks_of_the_two_rings_share_no_bytes": (
        "pairwise_pads._keystream: without self._ring.bits",
    ),
    "test_insider::test_votes_of_parties_that_do_not_exist_are_typed_errors": (
        "double_masks.check_senders: sorted(set(numbers)) != numbers or not set(numbers) <= set(members)",
        "double_masks.check_senders: not set(numbers) <= set(members)",
    ),
    "test_introduction::test_parties_meet_a_quorum_or_nobody": (
        "coordination.introduce: require_members(len(present), terms.members_min, terms.parties)",
        "introduction.Introduction._meet: len(request.keys) < self._terms.members_min",
    ),
    "test_introduction::test_parties_meet_once_and_after_the_seed": (
        "introduction.Introduction.handle: seed is None or self.masks is not None",
        "introduction.Introduction.handle: seed is None",
        "introduction.Introduction.handle: self.masks is not None",
    ),
    "test_lying_coordinator::test_a_total_for_other_openings_is_refused_by_name": (
        "double_masks.DoubleMasks.read: attempt",
    ),
    "test_lying_coordinator::test_every_lie_about_a_request_is_refused_and_the_true_request_answered": (
        "double_masks.check_senders: sorted(set(numbers)) != numbers",
        "double_masks.DoubleMasks.check: self._seat.number not in members",
        "double_masks.DoubleMasks._open: len(request.digest) != DIGEST_BYTES",
        "double_masks.DoubleMasks._restore: not silent or not others.issuperset(silent) or [share.party for share in request.shares] != list(silent)",  # noqa: E501
        "double_masks.DoubleMasks._restore: not silent",
        "double_masks.DoubleMasks._restore: not others.issuperset(silent)",
        "double_masks.DoubleMasks._restore: [share.party for share in request.shares] != list(silent)",
        "double_masks.DoubleMasks._check_votes: len(voters) < self._terms.members_min",
        "double_masks.DoubleMasks._require: self._progress != progress",
        "double_masks.DoubleMasks._require: attempt not in (None, entered.attempt)",
        "double_masks.DoubleMasks._read_members: len(members) < self._terms.members_min",
        "double_masks.DoubleMasks.check: attempt.round < last.attempt.round or attempt.number <= last.attempt.number or closed",  # noqa: E501
        "double_masks.DoubleMasks.check: attempt.round < last.attempt.round",
        "double_masks.DoubleMasks.check: attempt.number <= last.attempt.number",
        "double_masks.DoubleMasks.check: place != last.place",
        "masked_sum._read_bitmap: len(bitmap) != (parties + 7) // 8 or beyond",
        "masked_sum._read_bitmap: len(bitmap) != (parties + 7) // 8",
        "masked_sum._read_bitmap: beyond",
        "double_masks.rule: restored once",
        "double_masks.rule: restored is closed",
    ),
    "test_lying_coordinator::test_every_lie_about_a_total_is_refused_and_the_true_total_read": (
        "double_masks.DoubleMasks._combine: len(holders) != needed",
        "statements.read_words: len(plaintext) != length * words.itemsize",
    ),
    "test_masked_sum::test_only_vectors_of_ring_elements_are_masked": (
        "masked_sum.MaskSchedule.mask: values.dtype != self._ring.dtype or values.ndim != 1",
        "masked_sum.MaskSchedule.mask: values.dtype != self._ring.dtype",
        "masked_sum.MaskSchedule.mask: values.ndim != 1",
    ),
    "test_pairwise_pads::test_pads_of_different_statements_or_members_do_not_cancel": (
        "pairwise_pads._keystream: without statement",
    ),
    "test_pairwise_pads::test_pads_with_strangers_or_without_ourselves_are_our_own_mistake": (
        "pairwise_pads.PairwisePads.pad: self._number not in listed or not {*listed} - {self._number} <= self._secrets.keys()",  # noqa: E501
        "pairwise_pads.PairwisePads.pad: self._number not in listed",
        "pairwise_pads.PairwisePads.pad: not {*listed} - {self._number} <= self._secrets.keys()",
    ),
    "test_seed_agreement::test_a_coordinator_that_leads_with_a_key_of_its_own_is_noticed": (
        "seed_agreement.SeedHolder._take: self._verify(leader)",
    ),
    "test_seed_agreement::test_a_coordinator_that_replaces_a_key_is_noticed": (
        "seed_agreement.SeedHolder._share: self._check_keys(request.keys)",
        "seed_agreement.SeedHolder._verify: signed.verify(self._directory[signed.owner - 1], self._session)",
        "seed_agreement.SeedHolder._check_keys: self._verify(signed)",
    ),
    "test_seed_agreement::test_a_different_job_is_refused": (
        "seed_agreement.check_agreement: request.agreement != agreement",
        "seed_agreement.SeedHolder._open: check_agreement(request, self._agreement)",
    ),
    "test_seed_agreement::test_a_seed_of_another_length_is_refused_and_a_seed_is_taken_once": (
        "seed_agreement.SeedHolder._take: len(seed) != SEED_BYTES",
        "seed_agreement.rule: seed once",
    ),
    "test_seed_agreement::test_every_dropout_set_at_every_step_ends_in_one_seed_or_an_abort": (
        "seed_agreement.agree_on_seed_and_keys: require_members(len(members), members_min, parties)",
        "seed_agreement.agree_on_seed_and_keys: require_members(len(keys), members_min, parties)",
    ),
    "test_seed_agreement::test_requests_out_of_turn_are_refused": (
        "seed_agreement.SeedHolder._take: leader.owner == self._number",
        "seed_agreement.SeedHolder._check_keys: sorted(set(owners)) != owners or self._number not in owners",
        "seed_agreement.SeedHolder._check_keys: sorted(set(owners)) != owners",
        "seed_agreement.SeedHolder._check_keys: self._number not in owners",
        "seed_agreement.SeedHolder._verify: not 1 <= signed.owner <= len(self._directory)",
        "seed_agreement.rule: keys once",
    ),
    "test_seed_agreement::test_secrets_are_exchanged_with_signed_keys_and_after_ones_own": (
        "seed_agreement.SeedHolder.exchange_with_peers: self._key is None",
        "seed_agreement.SeedHolder.exchange_with_peers: self._check_keys(keys)",
    ),
    "test_seed_agreement::test_the_coordinator_checks_what_it_relays": (
        "seed_agreement._opened_by.check: not isinstance(reply, SessionOpened) or reply.key.owner != party",
        "seed_agreement._opened_by.check: not isinstance(reply, SessionOpened)",
        "seed_agreement._opened_by.check: reply.key.owner != party",
        "seed_agreement._opened_by.check: reply.key.verify(directory[party - 1], session)",
        "seed_agreement._boxes_for.check: not isinstance(reply, SealedSeeds)",
        "seed_agreement._boxes_for.check: len(listed) != len(set(listed)) or set(listed) != recipients or (not sizes <= {_BOX_BYTES})",  # noqa: E501
        "seed_agreement._boxes_for.check: len(listed) != len(set(listed))",
        "seed_agreement._boxes_for.check: set(listed) != recipients",
        "seed_agreement._boxes_for.check: not sizes <= {_BOX_BYTES}",
    ),
}

MUTANTS = {str(mutant): mutant for mutant in (*SUMS.find_checks(*MODULES), *find_rules())}
KILLERS = name_killers(KILLED_BY)


def test_every_mutant_has_a_test_that_kills_it_and_every_name_is_one():
    assert {*KILLERS} == {*MUTANTS}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_dies(name):
    assert kills("tests.aggregation", KILLERS[name], MUTANTS[name])
