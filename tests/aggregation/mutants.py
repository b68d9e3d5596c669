"""The rules of secure sums, each removed: what boxes, keys and statements are bound to, and what is remembered."""

from __future__ import annotations

from tests.mutants import Package

CHECKERS = {"check", "check_shares", "check_agreement", "kind", "read_words", "require_members", "verify"}
CHECKERS |= {"_check_keys", "_check_votes", "_verify"}
SUMS = Package("cloister.aggregation", frozenset(CHECKERS))
MODULES = (
    "common_masks",
    "coordination",
    "double_masks",
    "follower",
    "introduction",
    "masked_sum",
    "own_masks",
    "pairwise_pads",
    "seed_agreement",
    "statements",
    "terms",
)


def find_rules():
    """What is not a check: what boxes, keys and statements are bound to, what is remembered, and how many it takes."""
    yield from SUMS.find_contexts(
        "statements",
        "state_attempt",
        "session",
        "place.link",
        "attempt.round",
        "attempt.number",
        "attempt.members",
        "place.subject",
    )
    yield from SUMS.find_contexts("statements", "start_link", "session", "agreement")
    yield from SUMS.find_contexts("statements", "extend_link", "statement", "write_words(total)")
    yield from SUMS.find_contexts("own_masks", "derive_mask_key", "statement")
    yield from SUMS.find_contexts("pairwise_pads", "_keystream", "self._ring.bits", "statement")
    yield from SUMS.find_contexts(
        "double_masks",
        "context",
        "self._seat.session",
        "purpose",
        "attempt.round",
        "attempt.number",
        "attempt.members",
        "sender",
        "detail",
    )
    yield from SUMS.find_contexts(
        "own_masks", "_context", "self._session", "attempt.round", "attempt.number", "attempt.members", "sender"
    )
    keyed = 'Stream(derive_key(seed, "check words", statement))'
    yield SUMS.replaced("statements", "check words of a statement", (keyed, 'Stream(derive_key(seed, "check words"))'))
    yield SUMS.replaced(
        "statements", "check words of a seed", (keyed, 'Stream(derive_key(b"seed", "check words", statement))')
    )
    yield SUMS.replaced(
        "follower",
        "link in a vote",
        ("sign(_FOUND, place.link, ", "sign(_FOUND, "),
        ("identity, _FOUND, place.link, ", "identity, _FOUND, "),
    )
    yield SUMS.replaced(
        "follower",
        "subject in a vote",
        ("place.link, place.subject)\n        return", "place.link)\n        return"),
        ("place.link, place.subject)\n        if", "place.link)\n        if"),
    )
    yield SUMS.replaced(
        "follower",
        "purpose in a vote",
        ("sign(_FOUND, place", "sign(place"),
        ("identity, _FOUND, place", "identity, place"),
    )
    yield SUMS.replaced(
        "follower",
        "session around a vote",
        ('masks.seed, self._seat.session, "result", self', 'masks.seed, "result", self'),
        ('masks.seed, self._seat.session, "result", vote', 'masks.seed, "result", vote'),
    )
    yield SUMS.replaced(
        "follower",
        "sender of a vote",
        ('"result", self._seat.number)', '"result")'),
        ('"result", vote.party)', '"result")'),
    )
    yield SUMS.replaced(
        "follower", "link of the next round", ("total.attempt.round, reading.link", "total.attempt.round, self._link")
    )
    yield SUMS.replaced("follower", "a branch of its own", ("self.contributor.branch()", "self.contributor"))
    yield SUMS.replaced(
        "double_masks",
        "purpose in an opener's signature",
        ("sign(_VOTE, entered", "sign(entered"),
        ("identity, _VOTE, entered", "identity, entered"),
    )
    yield SUMS.replaced(
        "double_masks",
        "statement in an opener's signature",
        ("sign(_VOTE, entered.statement)", "sign(_VOTE)"),
        ("identity, _VOTE, entered.statement)", "identity, _VOTE)"),
    )
    yield SUMS.replaced("double_masks", "vector kept", ("vector = make() if kept is None else kept", "vector = make()"))
    yield SUMS.replaced("double_masks", "opened once", ('self._progress = "opened"', 'self._progress = "answered"'))
    yield SUMS.replaced("double_masks", "restored once", ('self._progress = "restored"', 'self._progress = "opened"'))
    yield SUMS.replaced(
        "double_masks", "restored is closed", ('("opened", "restored")\n            if', '("opened",)\n            if')
    )
    yield SUMS.replaced("double_masks", "digest kept", ("opened_digest=request.digest", 'opened_digest=b""'))
    yield SUMS.replaced("double_masks", "pads", (".pad(entered.members,", ".pad((self._seat.number,),"))
    yield SUMS.replaced(
        "double_masks", "own mask", ("    blinded = blinded + expand_mask(", "    blinded = blinded + 0 * expand_mask(")
    )
    yield SUMS.replaced(
        "own_masks", "fresh secret", ("return entropy.bytes(SECRET_BYTES)", "return bytes(SECRET_BYTES)")
    )
    yield SUMS.replaced("common_masks", "one answer a round", ("        self._answered = attempt.round\n", ""))
    yield SUMS.replaced("common_masks", "mask", ("self._schedule.mask(vector, ", "(lambda v, r, n: v)(vector, "))
    yield SUMS.replaced(
        "terms", "a threshold above those that may collude", ("self.colluding_max + 1", "max(1, self.colluding_max)")
    )
    yield SUMS.replaced("terms", "2q > n + t", ("(parties + colluding_max) // 2 + 1", "(parties + colluding_max) // 2"))
    yield SUMS.replaced(
        "seed_agreement",
        "keys once",
        ("isinstance(request, OpenSession) and self._key is None", "isinstance(request, OpenSession)"),
    )
    yield SUMS.replaced("seed_agreement", "seed once", ("        if self.seed is None:\n", "        if True:\n"))
    yield SUMS.replaced("coordination", "late members left out", ("len(answered) == len(members):", "answered:"))
