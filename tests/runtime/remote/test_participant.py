"""A party's side: whom it talks to, what it does when it is cut off, when it gives up, and what it tells."""

import asyncio
import time
from functools import partial
from itertools import pairwise

import msgspec
import pytest

from cloister.crypto import SystemEntropy
from cloister.errors import BudgetError, RemoteProtocolError
from cloister.runtime.remote import admission, greeting, messages
from cloister.runtime.remote import hub as hub_module
from cloister.runtime.remote import participant as participant_module
from cloister.runtime.remote.channel import Channel, LostError
from cloister.runtime.remote.greeting import RefusedError
from cloister.runtime.remote.hub import Deadlines
from cloister.runtime.remote.messages import Ending, Refusal
from cloister.runtime.remote.participant import AbandonedError, DisagreementError, Participant, UnreachableError
from tests.runtime.remote.people import NAMES, OWN, RUN, ToyScript, agree, make_hub, make_own, make_streams, run_toy


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(hub_module, "_FAREWELL_S", 0.2)
    monkeypatch.setattr(participant_module, "_BACKOFF_FIRST_S", 0.01)
    monkeypatch.setattr(participant_module, "_FAREWELL_S", 0.2)


def run(main):
    async def limited():
        async with asyncio.timeout(20):
            return await main

    return asyncio.run(limited())


def make_participant(connect, script=None, name="north", **options):
    options = {"deadlines": Deadlines(step_s=1.0)} | options
    script = script or ToyScript(name)
    return Participant(connect, OWN[name], agree(), party=name, script=script, entropy=SystemEntropy(), **options)


class HandCoordinator:
    """A coordinator whose messages a test says one by one."""

    def __init__(self, own=OWN["coordinator"], change=lambda welcome: welcome, run=RUN):
        self.own, self.change, self.run = own, change, run
        self.channels = asyncio.Queue()

    async def connect(self):
        at_coordinator, ours = make_streams()
        ours.peer = self.own.certificate
        self.channels.put_nowait(Channel(at_coordinator, is_coordinator=True))
        return ours

    async def greet(self):
        """Take the next call, and welcome it."""
        channel = await self.channels.get()
        challenge = messages.Challenge(1, 0, b"c" * 32)
        await channel.send(challenge)
        hello = await channel.receive()
        welcome = self.change(greeting.make_welcome(self.own, agree(), challenge, hello, run=self.run))
        await channel.send(welcome)
        return channel


def replace(**changes):
    return lambda welcome: msgspec.structs.replace(welcome, **changes)


@pytest.mark.parametrize(
    "options",
    [
        {"own": OWN["stranger"]},
        {"own": OWN["stranger"], "change": replace(identity=OWN["coordinator"].identity.public_bytes)},
        {"change": replace(signature=bytes(64))},
        {"change": replace(certificate_signature=bytes(64))},
        {"change": replace(run=b"r" * 16)},
        {"change": replace(program="0.1.1")},
    ],
)
def test_a_coordinator_that_is_not_the_jobs_gets_nothing(options):
    async def main():
        coordinator, script = HandCoordinator(**options), ToyScript("north")
        greeting_it = asyncio.ensure_future(coordinator.greet())
        with pytest.raises(RemoteProtocolError, match="identity which the job names"):
            await make_participant(coordinator.connect, script).take_part()
        await greeting_it
        assert script.calls == []  # its table was not opened

    run(main())


def test_a_coordinator_of_another_version_is_refused():
    async def main():
        coordinator = HandCoordinator(own=make_own("coordinator", program="0.9.0"))
        greeting_it = asyncio.ensure_future(coordinator.greet())
        with pytest.raises(RefusedError) as caught:
            await make_participant(coordinator.connect).take_part()
        await greeting_it
        assert caught.value.reason is Refusal.VERSION
        channel = Channel((streams := make_streams())[0], is_coordinator=True)
        await channel.send(messages.Challenge(2, 0, bytes(32)))

        async def connect():
            return streams[1]

        with pytest.raises(RefusedError, match="versions of Cloister with the same first number"):
            await make_participant(connect).take_part()

    run(main())


def test_another_run_is_not_joined_after_a_kill():
    async def main():
        coordinator, script = HandCoordinator(run=b"n" * 16), ToyScript("north", run=RUN)
        greeting_it = asyncio.ensure_future(coordinator.greet())
        with pytest.raises(RefusedError, match="--anew"):
            await make_participant(coordinator.connect, script).take_part()
        await greeting_it
        assert script.calls == []

    run(main())


@pytest.mark.parametrize("reason", list(Refusal))
def test_a_refusal_is_told_with_its_text(reason):
    async def main():
        coordinator = HandCoordinator()

        async def refuse():
            while True:
                channel = await coordinator.channels.get()
                await channel.send(messages.Challenge(1, 0, bytes(32)))
                await channel.receive()
                await channel.send(messages.Refused(reason))

        refusing = asyncio.ensure_future(refuse())
        if reason is Refusal.RATE:  # it calls again
            with pytest.raises(UnreachableError):
                await make_participant(coordinator.connect, deadlines=Deadlines(step_s=0.3)).take_part()
            refusing.cancel()
            return
        with pytest.raises(RefusedError) as caught:
            await make_participant(coordinator.connect).take_part()
        assert str(caught.value) == reason.text
        refusing.cancel()

    run(main())


@pytest.mark.parametrize(
    ("ending", "kind"),
    [(Ending.TOO_FEW, AbandonedError), (Ending.STOPPED, AbandonedError), (Ending.DISAGREE, DisagreementError)],
)
def test_the_end_of_a_run_is_told_at_once_even_while_a_role_works(ending, kind):
    async def main():
        coordinator, script = HandCoordinator(), ToyScript("north")
        working = asyncio.Event()
        loop = asyncio.get_running_loop()

        def consent(run):
            loop.call_soon_threadsafe(working.set)
            import time

            time.sleep(0.5)

        script.consent = consent
        part = asyncio.ensure_future(make_participant(coordinator.connect, script).take_part())
        channel = await coordinator.greet()
        await working.wait()
        started_s = loop.time()
        await channel.send(messages.Abandon(ending, ("harbour",)))
        with pytest.raises(kind, match="Missing: harbour"):
            await part
        assert loop.time() - started_s < 0.4

    run(main())


def test_a_trouble_of_our_own_stays_with_us():
    async def main():
        coordinator, script = HandCoordinator(), ToyScript("north")

        def consent(run):
            raise BudgetError("cap 1.0 is spent; 0.7 was asked.")

        script.consent = consent
        part = asyncio.ensure_future(make_participant(coordinator.connect, script).take_part())
        channel = await coordinator.greet()
        assert await channel.receive() == messages.Withdraw()
        with pytest.raises(BudgetError):
            await part

    run(main())


def test_whoever_is_stopped_says_that_it_leaves():
    async def main():
        coordinator = HandCoordinator()
        part = asyncio.ensure_future(make_participant(coordinator.connect).take_part())
        channel = await coordinator.greet()
        assert isinstance(await channel.receive(), messages.Consent)
        part.cancel()
        assert await channel.receive() == messages.Withdraw()
        with pytest.raises(asyncio.CancelledError):
            await part

    run(main())


def test_who_is_stopped_at_the_very_end_still_does_its_last_work(monkeypatch):
    """Otherwise its journals would stay."""
    monkeypatch.setattr(participant_module, "_FAREWELL_S", 5.0)
    done = []

    def work():
        time.sleep(0.2)
        done.append(True)

    async def main():
        closing = asyncio.ensure_future(make_participant(None).close(work))
        await asyncio.sleep(0.05)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing

    run(main())
    assert done


def test_a_coordinator_that_cannot_be_reached_is_called_again_and_given_up_at_the_deadline():
    calls = []

    async def connect():
        calls.append(asyncio.get_running_loop().time())
        raise LostError

    async def main():
        with pytest.raises(UnreachableError, match="must be reachable"):
            await make_participant(connect, deadlines=Deadlines(step_s=0.5)).take_part()

    run(main())
    waits = [later - earlier for earlier, later in pairwise(calls)]
    assert len(calls) >= 4
    assert waits[0] < 0.1
    assert max(waits) > 4 * waits[0]


def test_waits_double_up_to_a_limit_and_are_spread():
    participant = make_participant(None)
    waits = [[participant._draw_wait_s(calls) for _ in range(200)] for calls in (1, 2, 5, 40)]
    for drawn, most in zip(waits, (0.01, 0.02, 0.16, 10.24), strict=True):
        assert most / 2 <= min(drawn) < 0.6 * most
        assert 0.9 * most < max(drawn) <= most


def test_the_end_of_a_stream_is_not_the_end_of_a_run(monkeypatch):
    """However often it is cut, the party comes back, and is asked what it had not answered; nothing is asked twice."""

    monkeypatch.setattr(admission, "_CONNECTIONS_MOST", 1000)

    async def main():
        hub, scripts, streams = make_hub(), {name: ToyScript(name) for name in NAMES}, []

        async def connect():
            at_coordinator, ours = make_streams("north")
            streams.append((at_coordinator, ours))
            asyncio.ensure_future(hub.serve(at_coordinator))  # noqa: RUF006
            return ours

        async def connect_to(name):
            at_coordinator, ours = make_streams(name)
            asyncio.ensure_future(hub.serve(at_coordinator))  # noqa: RUF006
            return ours

        async def cut():
            while True:
                await asyncio.sleep(0.02)
                for end in streams[-1]:
                    await end.close()

        calling = {"north": connect} | {name: partial(connect_to, name) for name in NAMES[1:]}
        parties = [
            make_participant(calling[name], scripts[name], name, deadlines=Deadlines(step_s=5.0)).take_part()
            for name in NAMES
        ]
        parties = [asyncio.ensure_future(party) for party in parties]
        cutting = asyncio.ensure_future(cut())
        outcome = await run_toy(hub, rounds=300)
        cutting.cancel()
        await asyncio.gather(*parties)
        return outcome, scripts, len(streams)

    outcome, scripts, calls = run(main())
    assert calls >= 3
    assert (outcome.result.complete, outcome.result.total) == (True, 300 * 6)
    assert scripts["north"].party.answered == list(range(300))


def test_progress_names_who_is_waited_for():
    seen = []

    async def main():
        coordinator = HandCoordinator()
        part = make_participant(coordinator.connect, on_progress=seen.append)
        part = asyncio.ensure_future(part.take_part())
        channel = await coordinator.greet()
        await channel.receive()
        await channel.send(messages.Status(3, 40, "Lloyd round 1", ("valley",)))
        await channel.send(messages.Over())
        await part

    run(main())
    assert [(one.step, one.steps, one.label, one.waiting_for) for one in seen] == [
        (3, 40, "Lloyd round 1", ("valley",))
    ]


CLEAR_THE_SCREEN = "\x1b[2J\x1b[HSpent: nothing."


@pytest.mark.parametrize(
    "told",
    [
        messages.Status(1, 2, CLEAR_THE_SCREEN, ()),
        messages.Status(1, 2, "round 1\u202e of 2", ()),
        messages.Status(1, 2, "round 1\nround 2", ()),
        messages.Status(1, 2, "round 1", (CLEAR_THE_SCREEN,)),
        messages.Status(1, 2, "round 1", ("valley", "nobody of the job")),
        messages.Abandon(Ending.TOO_FEW, (CLEAR_THE_SCREEN,)),
    ],
)
def test_a_coordinator_cannot_write_to_our_screen(told):
    """What it says is shown, logged and kept: a label may not hold control characters, and names are the job's."""
    seen = []

    async def main():
        coordinator = HandCoordinator()
        part = make_participant(coordinator.connect, on_progress=seen.append, observe=seen.append)
        part = asyncio.ensure_future(part.take_part())
        channel = await coordinator.greet()
        await channel.receive()
        await channel.send(told)
        with pytest.raises(RemoteProtocolError, match="in printable text; it does not") as caught:
            await part
        assert "\x1b" not in str(caught.value)
        if not isinstance(told, messages.Abandon):  # after which nothing is said
            assert await channel.receive() == messages.Withdraw()

    run(main())
    assert "x1b" not in str(seen)
    assert "nobody" not in str(seen)


def test_nor_into_our_result():
    """Who had left by the end is kept in it, in the coordinator's words."""

    async def main():
        coordinator = HandCoordinator()
        part = asyncio.ensure_future(make_participant(coordinator.connect).take_part())
        channel = await coordinator.greet()
        await channel.receive()
        statement = greeting.consent_statement(agree(), RUN)
        consents = (messages.Consented(name, "0.1.0", OWN[name].identity.sign(*statement)) for name in NAMES)
        await channel.send(messages.Start("toy", bytes(16), messages.Facts(), tuple(consents)))
        assert await channel.receive() == messages.Seated()
        await channel.send(messages.Finish(bytes(16), b"", 0, (CLEAR_THE_SCREEN,)))
        with pytest.raises(RemoteProtocolError, match="name parties of the job alone"):
            await part

    run(main())


def test_the_hub_tells_parties_from_time_to_time(monkeypatch):
    monkeypatch.setattr(hub_module, "_STATUS_EVERY_S", 0.05)
    monkeypatch.setattr(hub_module, "_ALIVE_EVERY_S", 0.1)
    seen = []

    async def main():
        hub = make_hub(deadlines=Deadlines(start_s=0.6, step_s=1.0))
        telling = asyncio.ensure_future(hub.keep_alive())

        async def connect():
            at_coordinator, ours = make_streams("north")
            asyncio.ensure_future(hub.serve(at_coordinator))  # noqa: RUF006
            return ours

        part = make_participant(connect, on_progress=seen.append)
        part = asyncio.ensure_future(part.take_part())
        with pytest.raises(hub_module.MissingPartiesError):
            await hub.gather()
        await hub.close(messages.Abandon(Ending.MISSING))
        telling.cancel()
        with pytest.raises(AbandonedError):
            await part

    run(main())
    assert len(seen) >= 3
    assert seen[-1].waiting_for == ("harbour", "valley")
