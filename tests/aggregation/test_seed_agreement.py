"""The common seed: everyone who stays has it, the coordinator never, and tampering is noticed."""

import itertools

import pytest

from cloister.aggregation import SeedHolder, agree_on_seed_and_keys
from cloister.aggregation.seed_agreement import (
    OpenSession,
    Ready,
    SealedSeed,
    SealedSeeds,
    SessionOpened,
    ShareSeed,
    TakeSeed,
)
from cloister.crypto import Identity, SeededEntropy, SessionKey, SignedSessionKey, seal_box
from cloister.errors import RemoteProtocolError, TooFewPartiesError
from cloister.roles import Dropped

SESSION, AGREEMENT = bytes(16), b"the same job"


def identities_of(parties):
    return [Identity(SeededEntropy(1, f"identity {n}")) for n in range(parties)]


def directory_of(parties):
    return tuple(identity.public_bytes for identity in identities_of(parties))


def make_holders(parties):
    identities, directory = identities_of(parties), directory_of(parties)
    return {
        n + 1: SeedHolder(
            number=n + 1,
            identity=identities[n],
            directory=directory,
            agreement=AGREEMENT,
            session=SESSION,
            entropy=SeededEntropy(1, f"party {n}"),
        )
        for n in range(parties)
    }


def drive(holders, lost=frozenset(), members_min=1, seen=None):
    """Run the agreement; ``lost`` holds (step, party) whose reply does not arrive."""
    generator = agree_on_seed_and_keys(
        agreement=AGREEMENT, directory=directory_of(len(holders)), session=SESSION, members_min=members_min, steps=3
    )
    ask, step = next(generator), 0
    while True:
        answers = {}
        for party, request in ask.requests.items():
            reply = holders[party].handle(request)
            ask.check(party, reply)
            answers[party] = Dropped() if (step, party) in lost else reply
            if seen is not None:
                seen.append(reply)
        step += 1
        try:
            ask = generator.send(answers)
        except StopIteration as stop:
            return tuple(key.owner for key in stop.value)


def test_all_hold_one_seed_and_no_message_shows_it():
    holders = make_holders(4)
    seen = []
    assert drive(holders, seen=seen) == (1, 2, 3, 4)
    seeds = {holder.seed for holder in holders.values()}
    assert len(seeds) == 1
    assert seeds.pop() not in repr(seen).encode() + b"".join(
        item.box for reply in seen if isinstance(reply, SealedSeeds) for item in reply.boxes
    )


@pytest.mark.parametrize("parties", [1, 2, 3, 4])
def test_every_dropout_set_at_every_step_ends_in_one_seed_or_an_abort(parties):
    places = list(itertools.product(range(3), range(1, parties + 1)))
    for size in range(3):
        for lost in itertools.combinations(places, size):
            holders = make_holders(parties)
            try:
                members = drive(holders, frozenset(lost), members_min=2)
            except TooFewPartiesError as error:
                assert "at least 2 of" in str(error)
                continue
            assert len(members) >= 2
            assert len({holders[m].seed for m in members}) == 1
            assert holders[members[0]].seed is not None


def opened(holders):
    return {n: holder.handle(OpenSession(AGREEMENT)).key for n, holder in holders.items()}


def test_a_coordinator_that_replaces_a_key_is_noticed():
    holders = make_holders(3)
    keys = opened(holders)
    evil = SessionKey(SeededEntropy(9, "evil"))
    forged = SignedSessionKey(2, evil.public_bytes, keys[2].signature)
    with pytest.raises(RemoteProtocolError, match="must be signed by the identity"):
        holders[1].handle(ShareSeed((keys[1], forged, keys[3])))
    assert holders[1].seed is None


def test_a_coordinator_that_makes_a_box_of_its_own_is_noticed():
    holders = make_holders(2)
    keys = opened(holders)
    evil = SessionKey(SeededEntropy(9, "evil"))
    box = seal_box(
        bytes(32),
        sender=evil,
        recipient=keys[2].public_key,
        context=(SESSION, "common seed", 1, 2),
        entropy=SeededEntropy(9, "e"),
    )
    with pytest.raises(RemoteProtocolError, match="must come from the stated sender"):
        holders[2].handle(TakeSeed(keys[1], box))
    assert holders[2].seed is None


def test_a_coordinator_that_leads_with_a_key_of_its_own_is_noticed():
    """It would know the seed."""
    holders = make_holders(2)
    keys = opened(holders)
    evil = SessionKey(SeededEntropy(9, "evil"))
    context, entropy = (SESSION, "common seed", 1, 2), SeededEntropy(9, "e")
    box = seal_box(bytes(32), sender=evil, recipient=keys[2].public_key, context=context, entropy=entropy)
    with pytest.raises(RemoteProtocolError, match="must be signed by the identity"):
        holders[2].handle(TakeSeed(SignedSessionKey(1, evil.public_bytes, keys[1].signature), box))
    assert holders[2].seed is None


def test_a_seed_of_another_length_is_refused_and_a_seed_is_taken_once():
    holders = make_holders(2)
    keys = opened(holders)
    for length in (0, 31, 33, 32):
        box = seal_box(
            bytes(length),
            sender=holders[1]._key,
            recipient=keys[2].public_key,
            context=(SESSION, "common seed", 1, 2),
            entropy=SeededEntropy(9, "e"),
        )
        if length != 32:
            with pytest.raises(RemoteProtocolError, match="must have 32 bytes"):
                holders[2].handle(TakeSeed(keys[1], box))
    holders[2].handle(TakeSeed(keys[1], box))
    for again in (TakeSeed(keys[1], box), ShareSeed((keys[1], keys[2])), OpenSession(AGREEMENT)):
        with pytest.raises(RemoteProtocolError, match="out of turn"):
            holders[2].handle(again)


def test_secrets_are_exchanged_with_signed_keys_and_after_ones_own():
    holders, late = make_holders(2), make_holders(2)[1]
    keys = opened(holders)
    with pytest.raises(RemoteProtocolError, match="after our own was given out"):
        late.exchange_with_peers((keys[1], keys[2]))
    evil = SessionKey(SeededEntropy(9, "evil"))
    with pytest.raises(RemoteProtocolError, match="must be signed by the identity"):
        holders[1].exchange_with_peers((keys[1], SignedSessionKey(2, evil.public_bytes, keys[2].signature)))
    secrets = [holders[number].exchange_with_peers((keys[1], keys[2])) for number in (1, 2)]
    assert secrets[0][2] == secrets[1][1]


def test_a_box_for_another_party_does_not_open():
    holders = make_holders(3)
    keys = opened(holders)
    boxes = {item.recipient: item.box for item in holders[1].handle(ShareSeed(tuple(keys.values()))).boxes}
    with pytest.raises(RemoteProtocolError):
        holders[2].handle(TakeSeed(keys[1], boxes[3]))
    assert isinstance(holders[2].handle(TakeSeed(keys[1], boxes[2])), Ready)
    assert holders[2].seed == holders[1].seed


def test_requests_out_of_turn_are_refused():
    holders = make_holders(2)
    with pytest.raises(RemoteProtocolError, match="out of turn"):
        holders[1].handle(ShareSeed(()))
    keys = opened(holders)
    with pytest.raises(RemoteProtocolError, match="out of turn"):
        holders[1].handle(OpenSession(AGREEMENT))
    for listed in [(), (keys[2],), (keys[2], keys[1]), (keys[1], keys[1], keys[2])]:
        with pytest.raises(RemoteProtocolError, match="listed once each"):
            holders[1].handle(ShareSeed(listed))
    with pytest.raises(RemoteProtocolError, match="owner must be a party"):
        holders[1].handle(ShareSeed((keys[1], SignedSessionKey(9, keys[2].public_key, keys[2].signature))))
    with pytest.raises(RemoteProtocolError, match="another party"):
        holders[1].handle(TakeSeed(keys[1], b""))


def test_a_different_job_is_refused():
    with pytest.raises(RemoteProtocolError, match="Compare the job files"):
        make_holders(1)[1].handle(OpenSession(b"another job"))


def test_the_coordinator_checks_what_it_relays():
    holders = make_holders(2)
    keys = opened(holders)
    generator = agree_on_seed_and_keys(
        agreement=AGREEMENT, directory=directory_of(2), session=SESSION, members_min=2, steps=3
    )
    ask = next(generator)
    for reply in (SessionOpened(keys[2]), Ready()):
        with pytest.raises(RemoteProtocolError, match="own key"):
            ask.check(1, reply)
    with pytest.raises(RemoteProtocolError, match="must be signed"):
        ask.check(2, SessionOpened(SignedSessionKey(2, keys[1].public_key, keys[2].signature)))
    ask = generator.send({n: SessionOpened(key) for n, key in keys.items()})
    good = bytes(80)
    for boxes in [
        (),
        (SealedSeed(1, good),),
        (SealedSeed(2, good), SealedSeed(2, good)),
        (SealedSeed(2, bytes(10**6)),),
    ]:
        with pytest.raises(RemoteProtocolError, match="one box to each"):
            ask.check(1, SealedSeeds(boxes))
    with pytest.raises(RemoteProtocolError, match="SealedSeeds"):
        ask.check(1, Ready())


def test_nobody_meets_others_before_its_own_key_was_given_out():
    with pytest.raises(RemoteProtocolError, match="after our own was given out"):
        make_holders(2)[1].exchange_with_peers(())
