"""The coordinator's side: whom it lets in, whom it waits for, and what a hostile peer can do to a run: nothing."""

import asyncio

import msgspec
import pytest

from cloister.credentials import write_certificate_fingerprint
from cloister.crypto import SystemEntropy
from cloister.errors import RefusedError, RemoteProtocolError, TooFewPartiesError
from cloister.runtime.remote import admission, events, messages
from cloister.runtime.remote import hub as hub_module
from cloister.runtime.remote.channel import LostError
from cloister.runtime.remote.chunks import split
from cloister.runtime.remote.hub import Deadlines
from cloister.runtime.remote.messages import Ending, Refusal, pack
from cloister.runtime.remote.participant import AbandonedError, Participant
from tests.runtime.remote.people import (
    NAMES,
    OWN,
    RUN,
    HandParty,
    ToyScript,
    agree,
    make_hub,
    make_own,
    make_streams,
    run_toy,
)


@pytest.fixture(autouse=True)
def _short_farewell(monkeypatch):
    monkeypatch.setattr(hub_module, "_FAREWELL_S", 0.2)


def run(main):
    async def limited():
        async with asyncio.timeout(20):
            return await main

    return asyncio.run(limited())


def join(hub, name, script=None, **options):
    """A party that takes part, in a task of its own."""
    script = script or ToyScript(name)

    async def connect():
        at_coordinator, ours = make_streams(name)
        tasks.append(asyncio.ensure_future(hub.serve(at_coordinator)))
        return ours

    tasks = []
    participant = Participant(
        connect,
        OWN[name],
        agree(),
        party=name,
        script=script,
        entropy=SystemEntropy(),
        deadlines=options.pop("deadlines", Deadlines(step_s=3.0)),
        **options,
    )
    return asyncio.ensure_future(participant.take_part())


# --- a run ------------------------------------------------------------------------------------------------------------


def test_a_run_from_start_to_end():
    async def main():
        hub, scripts = make_hub(), {name: ToyScript(name) for name in NAMES}
        parties = [join(hub, name, script) for name, script in scripts.items()]
        outcome = await run_toy(hub)
        await asyncio.gather(*parties)
        return outcome, scripts

    outcome, scripts = run(main())
    assert (outcome.result.total, outcome.steps) == (3 * (1 + 2 + 3), 3)
    for script in scripts.values():
        assert script.calls == ["consent", "start", *["answer"] * 3, "finish"]
        passed = outcome.traffic[script.number]
        assert (passed.messages_sent, passed.messages_received, passed.steps_missed) == (3, 3, 0)
        assert (passed.bytes_sent, passed.bytes_received) == (
            script.endpoint.bytes_answered,
            script.endpoint.bytes_taken,
        )


def test_who_is_missing_is_named_when_the_deadline_passes():
    async def main():
        hub = make_hub(deadlines=Deadlines(start_s=0.3, step_s=5.0))
        party = join(hub, "north")
        with pytest.raises(TooFewPartiesError, match="missing: harbour, valley") as caught:
            await run_toy(hub)
        await hub.close(messages.Abandon(Ending.MISSING, caught.value.missing))
        with pytest.raises(AbandonedError, match=r"Nothing was charged\. Missing: harbour, valley\."):
            await party

    run(main())


@pytest.mark.parametrize("trouble", ["misses", "has no budget"])
def test_a_party_that_drops_out_is_left_out(trouble):
    """One refuses a request; one leaves because of its own trouble, and nobody hears why."""

    async def main():
        hub = make_hub()
        trouble_maker = ToyScript("valley", trouble=trouble, at=1)
        if trouble == "misses":
            trouble_maker.party.handle = lambda request: (_ for _ in ()).throw(RemoteProtocolError("no."))
        parties = [join(hub, "north"), join(hub, "harbour"), join(hub, "valley", trouble_maker)]
        outcome = await run_toy(hub)
        ends = await asyncio.gather(*parties, return_exceptions=True)
        return outcome, ends, hub.left

    outcome, ends, left = run(main())
    assert not outcome.result.complete
    assert ends[:2] == [None, None]
    if trouble == "misses":
        assert (outcome.result.total, ends[2], left) == (3 * (1 + 2), None, ())
        assert outcome.traffic[3].steps_missed == 3
    else:
        assert (outcome.result.total, left) == (3 * (1 + 2) + 3, ("valley",))
        assert "a release must fit" in str(ends[2])


def test_a_silent_party_is_waited_for_once_until_it_is_heard_again():
    async def main():
        hub = make_hub(deadlines=Deadlines(start_s=5.0, step_s=0.5))
        silent = HandParty(hub, "valley")
        await silent.greet()
        await silent.consent()
        parties = [join(hub, "north"), join(hub, "harbour")]
        serving = asyncio.ensure_future(run_toy(hub, rounds=50))
        assert isinstance(await silent.channel.receive(), messages.Start)
        await silent.channel.send(messages.Seated())
        outcome = await serving
        await asyncio.gather(*parties)
        return outcome.result.total, hub.left

    assert run(main()) == (50 * (1 + 2), ("valley",))  # it did not confirm the end


def test_a_reply_that_comes_too_late_is_not_taken_for_the_next_one():
    async def main():
        hub = make_hub(deadlines=Deadlines(start_s=5.0, step_s=0.4))
        slow = HandParty(hub, "valley")
        await slow.greet()
        await slow.consent()
        parties = [join(hub, "north"), join(hub, "harbour")]
        serving = asyncio.ensure_future(run_toy(hub, rounds=2))
        await slow.channel.receive()
        await slow.channel.send(messages.Seated())
        script = ToyScript("valley")
        first = await slow.channel.receive()
        second = await slow.channel.receive()
        await slow.channel.send(messages.Reply(first.number, script.endpoint.receive(first.frame)))
        await slow.channel.send(messages.Reply(second.number, script.endpoint.receive(second.frame)))
        finish = await slow.channel.receive()
        await slow.channel.send(script_done(script, finish))
        outcome = await serving
        await asyncio.gather(*parties)
        return outcome

    def script_done(script, finish):
        script.run = RUN
        return script.finish(finish)

    outcome = run(main())
    assert outcome.result.total == 2 * (1 + 2) + 3
    assert outcome.traffic[3].steps_missed == 1


# --- who is let in ----------------------------------------------------------------------------------------------------


def replace(**changes):
    return lambda hello: msgspec.structs.replace(hello, **changes)


@pytest.mark.parametrize(
    ("reason", "options", "change"),
    [
        (Refusal.VERSION, {}, replace(major=2)),
        (Refusal.VERSION, {"own": make_own("north", program="0.2.0")}, None),
        (Refusal.VERSION, {"own": make_own("north", program="one")}, None),
        (Refusal.PARTY, {}, replace(party="coast")),
        (Refusal.IDENTITY, {}, replace(party="harbour")),
        (Refusal.IDENTITY, {"own": OWN["stranger"]}, None),
        (Refusal.IDENTITY, {"own": OWN["stranger"]}, replace(identity=OWN["north"].identity.public_bytes)),
        (Refusal.IDENTITY, {"certificate": OWN["stranger"].certificate}, None),
        (Refusal.IDENTITY, {}, replace(nonce=b"n" * 32)),
        (Refusal.IDENTITY, {}, replace(signature=bytes(64))),
        (Refusal.IDENTITY, {}, replace(certificate_signature=bytes(64))),
        (Refusal.IDENTITY, {}, replace(job=b"k" * 32)),
        (Refusal.JOB, {"agreed": agree(job=b"k" * 32)}, None),
    ],
)
def test_who_is_not_who_or_what_was_agreed_is_refused(reason, options, change):
    async def main():
        party = HandParty(make_hub(), **options)
        answer = await party.greet(change=change or (lambda hello: hello))
        await party.served
        return answer

    assert run(main()) == messages.Refused(reason)


@pytest.mark.parametrize("what", ["identity", "certificate"])
def test_who_is_revoked_is_refused(what):
    from cloister.crypto import write_fingerprint

    fingerprint = {
        "identity": write_fingerprint(OWN["north"].identity.public_bytes),
        "certificate": write_certificate_fingerprint(OWN["north"].certificate),
    }[what]

    async def main():
        return await HandParty(make_hub(agree(revoked=[fingerprint]))).greet()

    assert run(main()) == messages.Refused(Refusal.REVOKED)


def test_a_party_that_refuses_the_coordinator_tells_it_why():
    """Both sides know the reason, and nothing of the party was opened."""
    from cloister.crypto import write_fingerprint

    revoked = write_fingerprint(OWN["coordinator"].identity.public_bytes)
    heard, script = {"hub": [], "north": []}, ToyScript("north")

    async def main():
        hub = make_hub(observe=heard["hub"].append)
        at_coordinator, ours = make_streams()
        served = asyncio.ensure_future(hub.serve(at_coordinator))

        async def connect():
            return ours

        participant = Participant(
            connect,
            OWN["north"],
            agree(revoked=[revoked]),
            party="north",
            script=script,
            entropy=SystemEntropy(),
            deadlines=Deadlines(step_s=3.0),
            observe=heard["north"].append,
        )
        with pytest.raises(RefusedError, match="policy may revoke"):
            await participant.take_part()
        await served

    run(main())
    assert events.Refused("north", "REVOKED", by_peer=True) in heard["hub"]
    assert heard["north"] == [events.Refused("coordinator", "REVOKED")]
    assert script.calls == []


@pytest.mark.parametrize("party", ["north", "coast"])
def test_a_refusal_is_told_with_a_name_of_the_job_or_none(party):
    heard = []

    async def main():
        stranger = HandParty(make_hub(observe=heard.append), own=OWN["stranger"])
        await stranger.greet(change=replace(party=party))
        await stranger.served

    run(main())
    reason, name = ("IDENTITY", "north") if party == "north" else ("PARTY", "")
    assert heard == [events.Refused(name, reason)]


def test_a_greeting_from_another_connection_is_worth_nothing():
    """Neither on a connection of somebody else, nor later on one with the same certificate."""

    async def main():
        hub = make_hub()
        true = HandParty(hub)
        assert isinstance(await true.greet(), messages.Welcome)
        answers = []
        for options in ({"own": OWN["stranger"]}, {}):
            thief = HandParty(hub, **options)
            answers.append(await thief.greet(change=lambda hello: true.hello))
        return answers

    assert run(main()) == [messages.Refused(Refusal.IDENTITY)] * 2


def test_a_run_of_another_coordinator_is_not_gone_on_with():
    async def main():
        return await HandParty(make_hub()).greet(run=b"r" * 16)

    assert run(main()) == messages.Refused(Refusal.RUN)


def test_the_newer_connection_of_a_party_wins_and_only_if_it_proves_who_it_is():
    async def main():
        hub = make_hub()
        first = HandParty(hub)
        await first.greet()
        await HandParty(hub, own=OWN["stranger"]).greet()  # claims to be north
        assert not first.served.done()
        second = HandParty(hub)
        assert isinstance(await second.greet(), messages.Welcome)
        await first.served
        with pytest.raises(LostError):
            await first.channel.receive()
        assert not second.served.done()

    run(main())


def test_a_party_that_calls_without_end_is_told_to_wait(monkeypatch):
    monkeypatch.setattr(admission, "_CONNECTIONS_MOST", 3)

    async def main():
        hub = make_hub()
        answers = [await HandParty(hub).greet() for _ in range(4)]
        other = await HandParty(hub, "harbour").greet()
        return [type(answer) for answer in answers], answers[-1], type(other)

    kinds, last, other = run(main())
    assert kinds == [messages.Welcome] * 3 + [messages.Refused]
    assert last.reason is Refusal.RATE
    assert other is messages.Welcome


def test_strangers_who_say_nothing_are_few_and_do_not_stay(monkeypatch):
    monkeypatch.setattr(admission, "STRANGERS_MOST", 5)
    monkeypatch.setattr(admission, "_GREETING_S", 0.3)

    async def main():
        hub = make_hub()
        mute = [HandParty(hub) for _ in range(9)]
        await asyncio.sleep(0.1)
        assert sum(party.served.done() for party in mute) == 4
        assert isinstance(await HandParty(hub, "harbour").greet(), messages.Welcome)  # others are let in meanwhile
        await asyncio.gather(*(party.served for party in mute))
        assert isinstance(await HandParty(hub).greet(), messages.Welcome)

    run(main())


def test_who_has_left_a_run_cannot_come_back():
    async def main():
        hub = make_hub()
        leaving = HandParty(hub, "valley")
        await leaving.greet()
        await leaving.consent()
        parties = [join(hub, "north"), join(hub, "harbour")]
        serving = asyncio.ensure_future(run_toy(hub))
        await leaving.channel.receive()
        await leaving.channel.send(messages.Withdraw())
        await leaving.served
        answer = await HandParty(hub, "valley").greet()
        await asyncio.gather(serving, *parties)
        return answer, hub.left

    assert run(main()) == (messages.Refused(Refusal.LEFT), ("valley",))


def test_who_leaves_before_the_start_may_come_back():
    async def main():
        hub = make_hub()
        leaving = HandParty(hub, "valley")
        await leaving.greet()
        await leaving.consent()
        await leaving.channel.send(messages.Withdraw())
        await leaving.served
        parties = [join(hub, name) for name in NAMES]
        outcome = await run_toy(hub)
        await asyncio.gather(*parties)
        return outcome.result.complete

    assert run(main())


# --- hostile peers ----------------------------------------------------------------------------------------------------


def test_garbage_on_other_connections_does_not_stop_a_run():
    async def main():
        hub = make_hub()

        async def flood():
            while True:
                at_coordinator, ours = make_streams("stranger")
                served = asyncio.ensure_future(hub.serve(at_coordinator))
                await ours.read()
                for chunk in (b"\0\x08\0\0\xc1garbage", b"\0", b"\1", b"\7", b""):
                    await ours.write(chunk)
                await served

        flooding = asyncio.ensure_future(flood())
        parties = [join(hub, name) for name in NAMES]
        outcome = await run_toy(hub, rounds=20)
        await asyncio.gather(*parties)
        flooding.cancel()
        return outcome.result

    result = run(main())
    assert (result.complete, result.total) == (True, 20 * 6)


@pytest.mark.parametrize(
    "say",
    [
        lambda request: messages.Reply(request.number, b"no frame"),
        lambda request: messages.Reply(request.number + 1, b"not asked"),
        lambda request: messages.Seated(),
        lambda request: messages.Done(RUN, bytes(64), messages.Facts()),
        lambda request: messages.Consent(bytes(64), messages.Facts()),
    ],
)
def test_a_party_that_breaks_the_rules_harms_only_itself(say):
    async def main():
        hub = make_hub(deadlines=Deadlines(start_s=5.0, step_s=0.5))
        hostile = HandParty(hub, "valley")
        await hostile.greet()
        await hostile.consent()
        parties = [join(hub, "north"), join(hub, "harbour")]
        serving = asyncio.ensure_future(run_toy(hub, rounds=2))
        await hostile.channel.receive()
        await hostile.channel.send(messages.Seated())
        request = await hostile.channel.receive()
        for chunk in split(*pack(say(request))):
            await hostile.channel.stream.write(chunk)
        outcome = await serving
        await asyncio.gather(*parties)
        return outcome.result.total

    assert run(main()) == 2 * (1 + 2)


@pytest.mark.parametrize("forged", ["consent", "done"])
def test_what_a_party_agrees_to_must_be_signed(forged):
    async def main():
        hub = make_hub(deadlines=Deadlines(start_s=0.5, step_s=0.5))
        hostile = HandParty(hub, "valley")
        await hostile.greet()
        if forged == "consent":
            await hostile.channel.send(messages.Consent(bytes(64), messages.Facts()))
            await hostile.served
            assert hub.members["valley"].consent is None
            return
        await hostile.consent()
        parties = [join(hub, "north"), join(hub, "harbour")]
        serving = asyncio.ensure_future(run_toy(hub, rounds=0))
        await hostile.channel.receive()
        await hostile.channel.send(messages.Seated())
        finish = await hostile.channel.receive()
        await hostile.channel.send(messages.Done(finish.session, bytes(64), messages.Facts()))
        await serving
        await asyncio.gather(*parties)
        assert hub.left == ("valley",)

    run(main())


def test_a_number_that_the_role_refuses_counts_as_no_answer():
    async def main():
        hub = make_hub()
        script = ToyScript("valley")
        script.answer = lambda frame: script.endpoint.receive(frame)[:-1] + b"\xc1"
        parties = [join(hub, "north"), join(hub, "harbour"), join(hub, "valley", script)]
        outcome = await run_toy(hub)
        await asyncio.gather(*parties)
        return outcome

    outcome = run(main())
    assert outcome.result.total == 3 * (1 + 2)
    assert outcome.traffic[3].steps_missed == 3
