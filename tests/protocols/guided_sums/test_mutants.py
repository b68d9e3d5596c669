"""Every check of guided sums, every range and price of a question, and all that is remembered or signed, is needed.

Each mutant is the code with one of them removed; the test that dies of it is named here. What is added without such a
test fails below. Those of the secure sums beneath: `tests/aggregation/test_mutants.py`.
"""

import pytest

from tests.mutants import kills, name_killers
from tests.protocols.guided_sums.mutants import find_mutants
from tests.protocols.guided_sums.test_questions import CASES, prepare

KILLED_BY = {
    "feddp.test_session::test_a_party_outside_the_sample_refuses": (
        "guided_sums.party.GuidedParty._answer: not agreement.is_asked(number, round_, session=self._seat.session)",
    ),
    "guided_sums.test_alone::test_no_coordinator_can_be_seated": (
        "guided_sums.coordinator.coordinate: agreed.agreement.settings.alone",
    ),
    "guided_sums.test_agreement::test_the_coordinator_has_a_noise_duty_exactly_where_it_adds_the_noise": (
        "guided_sums.coordinator.coordinate: (duty is not None) != agreed.agreement.by_coordinator",
    ),
    "guided_sums.test_agreement::test_two_quorums_have_an_honest_party_in_common": (
        "guided_sums.agreement.rule: 2q > n + t",
    ),
    "guided_sums.test_bindings::test_a_question_is_signed_for_one_session_round_leader_salt_and_box": (
        "guided_sums.statements.check_stated: leader > len(directory)",
        "guided_sums.statements.check_stated: sizes != (SALT_BYTES, length + TAG_BYTES, SIGNATURE_BYTES)",
        "guided_sums.statements.check_stated: not is_signed(stated.signature, directory[leader - 1], *signed)",
        "guided_sums.statements._signed: without 'guided sums question'",
        "guided_sums.statements._signed: without session",
        "guided_sums.statements._signed: without round_",
        "guided_sums.statements._signed: without leader",
        "guided_sums.statements._signed: without salt",
        "guided_sums.statements._signed: without box",
    ),
    "guided_sums.test_bindings::test_a_result_is_signed_under_its_session_seed_and_link": (
        "guided_sums.statements._read_votes: len(signatures) != SIGNATURE_BYTES * len(numbers)",
        "guided_sums.statements.sign_result: without self.session",
        "guided_sums.statements.name_result: without link",
        "guided_sums.statements.rule: seed under a result",
    ),
    "guided_sums.test_bindings::test_every_link_follows_from_all_that_was_stated": (
        "guided_sums.statements.next_link: without link",
        "guided_sums.statements.next_link: without round_",
        "guided_sums.statements.next_link: without stated.leader",
        "guided_sums.statements.next_link: without stated.salt",
        "guided_sums.statements.next_link: without stated.box",
        "guided_sums.statements.first_link: without agreement",
        "guided_sums.statements.first_link: without session",
    ),
    "guided_sums.test_bindings::test_no_two_questions_are_sealed_under_one_key": (
        "guided_sums.statements.rule: session around a question",
        "guided_sums.statements.rule: round around a question",
        "guided_sums.statements.rule: leader around a question",
        "guided_sums.statements.rule: salt around a question",
    ),
    "guided_sums.test_leading::test_a_leader_that_hands_over_what_another_has_stated_is_passed_over": (
        "guided_sums.coordinator._Line._check.check: reply.leader != party",
    ),
    "guided_sums.test_leading::test_a_leader_that_states_what_nobody_would_take_is_passed_over": (
        "guided_sums.coordinator._Line._check.check: expect(Stated)(party, reply)",
        "guided_sums.coordinator._Line._check.check: check_stated(round_, ...)",
    ),
    "guided_sums.test_leading::test_a_party_that_was_away_takes_links_of_the_right_length_only": (
        "guided_sums.party.GuidedParty._check_link: len(link) != len(self._link)",
    ),
    "guided_sums.test_leading::test_a_result_needs_a_quorum_of_signatures_on_it": (
        "guided_sums.party.GuidedParty.finding: self._result is None or self._signatures < quorum",
        "guided_sums.party.GuidedParty.finding: self._signatures < quorum",
    ),
    "guided_sums.test_leading::test_a_sum_of_other_answers_ends_without_a_result_and_looks_like_any_session": (
        "guided_sums.party.GuidedParty.finding: self._result is None",
        "guided_sums.leader.rule: sums of other answers",
        "guided_sums.leader.rule: nothing more is asked",
    ),
    "guided_sums.test_leading::test_if_nobody_answers_there_are_too_few": (
        "guided_sums.coordinator._Line.ask_leader: require_members(0, ...)",
    ),
    "guided_sums.test_leading::test_who_computes_other_questions_is_passed_over": (
        "guided_sums.leader.rule: questions compared",
    ),
    "guided_sums.test_leading::test_whoever_signs_with_something_else_is_not_in_the_result": (
        "guided_sums.coordinator._coordinate: require_members(len(signed), ...)",
        "guided_sums.coordinator._check_signature: expect(Signed)(party, reply)",
        "guided_sums.coordinator._check_signature: len(reply.signature) != SIGNATURE_BYTES",
    ),
    "guided_sums.test_lies::test_a_question_that_may_not_be_asked_is_refused_and_the_proper_one_answered": (
        "guided_sums.party.GuidedParty._answer: round_ > self._answered and query.l2_squared > self._left",
        "guided_sums.party.rule: what is left",
    ),
    "guided_sums.test_lies::test_whatever_else_a_leader_or_a_coordinator_sends_is_refused_too": (
        "guided_sums.statements.Forms._read: any(padding)",
    ),
    "guided_sums.test_ranges::test_a_query_costs_something_if_and_only_if_it_asks_for_numbers": (
        "guided_sums.query.Query.__post_init__: (self.length == 0) != (self.l2_squared == 0) or self.length < 0 or self.l2_squared < 0",  # noqa: E501
        "guided_sums.query.Query.__post_init__: (self.length == 0) != (self.l2_squared == 0)",
        "guided_sums.query.Query.__post_init__: self.length < 0",
        "guided_sums.query.Query.__post_init__: self.l2_squared < 0",
    ),
    "guided_sums.test_ranges::test_a_question_longer_than_its_slot_or_of_another_kind_is_not_stated": (
        "guided_sums.statements.Forms.write: len(written) > room or not isinstance(question, Idle | self._slots[round_ - 1][1])",  # noqa: E501
        "guided_sums.statements.Forms.write: len(written) > room",
        "guided_sums.statements.Forms.write: not isinstance(question, Idle | self._slots[round_ - 1][1])",
        "guided_sums.statements.rule: padding",
    ),
    "guided_sums.test_ranges::test_a_question_out_of_range_is_refused": (
        "guided_sums.query.take_points: require(bool((np.abs(numbers) <= most).all()), ...)",
        "guided_sums.query.take_lengths: require_length(what, numbers)",
        "guided_sums.query.require_length: require(within, ...)",
        "guided_sums.query.count_rows: require(1 <= rows <= most, ...)",
        "guided_sums.query.pose: find_reach(isqrt(form.l2_squared), form.length)",
        "guided_sums.statistics.Plane.unpack: require(1 <= m <= axes_most, ...)",
        "guided_sums.statistics.Plane.unpack: require(short, \"a question's axes\", 'no longer than 1', 'others')",
        "guided_sums.statistics.Moments.form: require_length('radius', radius)",
        "guided_sums.refinement.PackedGuide.make_join: require_length('width', self.radius)",
        "guided_sums.refinement.Offsets.form: find_reach(scale, d)",
        "synopsis.questions.Lengths.form: require(bool((np.diff(edges) < 0).all()), ...)",
        "synopsis.questions.Histogram._lay: require(fits, ...)",
        "synopsis.questions.Histogram._lay: require(wide, ...)",
        "feddp.questions.Weights._choose: require(len(self.kept) == size, ...)",
        "feddp.questions.Weights._choose: require(fits, ...)",
        "feddp.questions.PackedMove.unpack: require(fits, ...)",
        "feddp.questions.PackedMove.unpack: require_length('scale', self.scale)",
        "guided_sums.statistics.Plane.unpack: self.origin in range",
        "guided_sums.statistics.Plane.unpack: self.axes in range",
        "guided_sums.statistics.Moments.form: self.middle in range",
        "guided_sums.refinement.Offsets.form: rows of self.centres",
        "guided_sums.refinement.PackedGuide.make_join: self.places in range",
        "guided_sums.refinement.Offsets.form: self.centres in range",
        "guided_sums.refinement.Offsets.form: self.radii in range",
        "synopsis.questions.Lengths.form: self.middle in range",
        "synopsis.questions.Lengths.form: self.edges in range",
        "synopsis.questions.Histogram._lay: self.low in range",
        "synopsis.questions.Histogram._lay: self.high in range",
        "synopsis.questions.Histogram._lay: rows of self.low",
        "feddp.questions.PackedMove.unpack: rows of self.shifts",
        "feddp.questions.PackedMove.unpack: self.shifts in range",
        "feddp.published_questions.Assignment.make_labels: self.centres in range",
        "guided_sums.scaling.StatedScale.unpack: require(within, ...)",
        "guided_sums.scaling.StatedScale.unpack: require(sound, ...)",
        "synopsis.zoom_questions.Binned.form: require(rising, ...)",
        "synopsis.zoom_questions.Binned.form: require(histograms >= 1, ...)",
        "synopsis.zoom_questions.Windows.take_windows: require(bool(wide.all()), ...)",
    ),
    "guided_sums.test_ranges::test_a_question_that_says_it_is_longer_than_its_box_is_refused": (
        "guided_sums.statements.Forms._read: len(encoded) != length or any(padding)",
        "guided_sums.statements.Forms._read: len(encoded) != length",
    ),
    "guided_sums.test_ranges::test_a_result_out_of_range_is_refused": (
        "guided_sums.algorithm.Result.read: require(bool((noise >= 0).all()), ...)",
        "guided_sums.algorithm.Result.read: require(bool((numbers <= NUMBER_MOST).all()), ...)",
        "guided_sums.algorithm.Result.read: rows of self.centres",
        'guided_sums.algorithm.Result.read: require(sizes == k, "the number of a result\'s sizes", str(k), sizes)',
        "guided_sums.algorithm.Result.read: self.centre_noise in range",
        "guided_sums.algorithm.Result.read: self.centres in range",
    ),
    "guided_sums.test_ranges::test_a_share_that_is_too_small_for_all_columns_is_refused_by_name": (
        "synopsis.questions.Columns.form: require(height >= 1, ...)",
    ),
    "guided_sums.test_ranges::test_no_honest_question_costs_less_than_it_may": (
        "guided_sums.statistics.Count.form: half the price",
        "guided_sums.statistics.Moments.form: half the price",
        "guided_sums.refinement.Offsets.form: half the price",
        "synopsis.questions.Columns.form: half the price",
        "synopsis.questions.Middle.form: half the price",
        "synopsis.questions.Lengths.form: half the price",
        "synopsis.questions.Histogram.form: half the price",
        "feddp.questions.Weights.form: half the price",
        "feddp.published_questions.Products.form: half the price",
        "feddp.published_questions.PointWeights.form: half the price",
        "feddp.published_questions.ClusterSums.form: half the price",
        "feddp.published_questions.ClusterCounts.form: half the price",
        "synopsis.zoom_questions.Binned.form: half the price",
        "guided_sums.query.rule: a whole client bounded",
    ),
    "guided_sums.test_ranges::test_shares_of_laplace_noise_are_not_rehearsed": (
        "guided_sums.algorithm._total_noise: isinstance(noise, DiscreteLaplace)",
    ),
    "guided_sums.test_refusals::test_a_party_whose_books_are_full_sends_nothing": (
        "guided_sums.party.GuidedParty.finding: not self._finished",
    ),
    "guided_sums.test_refusals::test_requests_out_of_turn_are_refused_and_change_nothing": (
        "guided_sums.statements.Statements.open: check_stated(round_, ...)",
        "guided_sums.party.GuidedParty.handle: self.finished",
        "guided_sums.party.GuidedParty._lead: not self._led < request.round <= last",
        "guided_sums.party.GuidedParty._answer: not self._answered <= round_ <= len(agreement.slots)",
        "guided_sums.party.GuidedParty._answer: self._check_link(round_, request.link)",
        "guided_sums.party.GuidedParty._check_link: len(link) != len(self._link) or (self._answered == round_ - 1 and link != self._link)",  # noqa: E501
        "guided_sums.party.GuidedParty._check_link: self._answered == round_ - 1 and link != self._link",
        "guided_sums.party.GuidedParty._sign: self._answered >= round_",
        "guided_sums.party.GuidedParty._sign: self._check_link(round_, request.link)",
        "guided_sums.party.GuidedParty._finish: self._answered != len(self._agreement.slots) + 1",
        "guided_sums.leader.Leader.think: [past.total.attempt.round for past in unread] != list(range(self._read + 1, round_))",  # noqa: E501
        "guided_sums.party.rule: what was answered",
        "guided_sums.party.rule: what was signed",
        "guided_sums.party.rule: what was stated",
        "guided_sums.party.rule: a question that is paid for",
        "guided_sums.leader.rule: what was read",
    ),
    "synopsis.test_spread::test_a_share_that_is_too_small_for_all_columns_is_refused_by_name": (
        "synopsis.zoom_questions.Binned.form: require(height >= 1, ...)",
    ),
    "synopsis.test_spread::test_parties_as_units_are_refused": (
        "guided_sums.scaling.Scaled.form: require(not public.settings.client_level, ...)",
        "synopsis.zoom_questions.Binned.form: require(not settings.client_level, ...)",
    ),
    "synopsis.test_spread::test_records_that_are_not_stored_are_not_scaled": (
        "guided_sums.scaling.encode_records: not isinstance(records, StoredRecords)",
    ),
    "synopsis.test_spread_job::test_too_few_records_for_unknown_bounds_end_in_an_error_that_says_so": (
        "guided_sums.party.GuidedParty.finding: self._result.is_nothing",
    ),
}

MUTANTS = {str(mutant): mutant for mutant in find_mutants()}
KILLERS = name_killers(KILLED_BY)


@pytest.fixture(autouse=True, scope="module")
def prepared():
    """Honest questions are made before any mutant is."""
    for case in CASES:
        prepare(*case)


def test_every_mutant_has_a_test_that_kills_it_and_every_name_is_one():
    assert {*KILLERS} == {*MUTANTS}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_dies(name):
    assert kills("tests.protocols", KILLERS[name], MUTANTS[name])
