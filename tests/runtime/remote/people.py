"""A coordinator and three parties that add up numbers, connected by streams in memory."""

import asyncio
import hashlib

from cloister.crypto import Identity, SystemEntropy, make_entropy
from cloister.runtime.remote import greeting, messages
from cloister.runtime.remote.channel import Channel, LostError
from cloister.runtime.remote.greeting import Agreed, OwnEnd
from cloister.runtime.remote.hub import Deadlines, Hub
from cloister.wire import CoordinatorEndpoint, PartyEndpoint
from tests.runtime.toy_process import CODEC, SESSION, Party, ToyTask, coordinate

NAMES = ("north", "harbour", "valley")
RUN = bytes(range(16))
FRAME_BYTES = 2**16


def make_own(name, program="0.1.0"):
    identity = Identity(make_entropy(f"identity of {name}", seed=5))
    return OwnEnd(identity=identity, certificate=f"certificate of {name}".encode(), program=program)


OWN = {name: make_own(name) for name in (*NAMES, "coordinator", "stranger")}


def agree(job=b"j" * 32, revoked=()):
    return Agreed(
        job=job,
        parties={name: OWN[name].identity.public_bytes for name in NAMES},
        coordinator=OWN["coordinator"].identity.public_bytes,
        revoked=frozenset(revoked),
    )


class MemoryStream:
    """One end of a stream in memory; `peer` is what TLS would have shown of the other end."""

    def __init__(self, incoming, outgoing, peer):
        self._incoming, self._outgoing, self.peer = incoming, outgoing, peer
        self.closed = False

    async def read(self):
        chunk = await self._incoming.get()
        if chunk is None:
            self._incoming.put_nowait(None)
            raise LostError
        return chunk

    async def write(self, chunk):
        if self.closed:
            raise LostError
        await self._outgoing.put(chunk)

    async def close(self):
        if not self.closed:
            self.closed = True
            await self._outgoing.put(None)


def make_streams(party="north"):
    """The coordinator's end and the party's, with TLS's certificates of the two."""
    up, down = asyncio.Queue(), asyncio.Queue()
    at_coordinator = MemoryStream(up, down, OWN[party].certificate)
    return at_coordinator, MemoryStream(down, up, OWN["coordinator"].certificate)


def make_hub(agreed=None, **changes):
    options = {"deadlines": Deadlines(start_s=5.0, step_s=5.0), "run": RUN, "entropy": SystemEntropy()} | changes
    return Hub(OWN["coordinator"], agreed or agree(), **options)


async def run_toy(hub, rounds=3):
    """What the coordinator does in a run."""
    consents = await hub.gather()
    start = messages.Start("toy", SESSION, messages.Facts(), consents)
    endpoint = CoordinatorEndpoint(coordinate(rounds), codec=CODEC, session=SESSION)
    run = await hub.run_session(start, endpoint, NAMES, frame_bytes=FRAME_BYTES, done={})
    await hub.finish_session({name: messages.Finish(SESSION, b"", 0, hub.left) for name in NAMES})
    await hub.close(messages.Over())
    return run


class ToyScript:
    """What a party does in a run (`cloister.runtime.remote.participant.Script`)."""

    def __init__(self, name, agreed=None, run=b"", trouble="", at=-1):
        self.name, self.agreed, self.run = name, agreed or agree(), run
        self.number = 1 + NAMES.index(name)
        self.party = Party(ToyTask(number=self.number, trouble=trouble, at=at))
        self.endpoint = PartyEndpoint(self.party, number=self.number, codec=CODEC, session=SESSION)
        self.is_complete = False
        self.calls = []

    def consent(self, run):
        self.calls.append("consent")
        self.run = run
        signature = OWN[self.name].identity.sign(*greeting.consent_statement(self.agreed, run))
        return messages.Consent(signature, messages.Facts())

    def start(self, start):
        self.calls.append("start")
        greeting.check_consents(start.consents, self.agreed, self.run, party=self.name)
        return FRAME_BYTES

    def answer(self, frame):
        self.calls.append("answer")
        return self.endpoint.receive(frame)

    def finish(self, finish):
        self.calls.append("finish")
        self.is_complete = True
        digest = hashlib.sha256(finish.outcome).digest()
        statement = greeting.done_statement(self.agreed, self.run, finish.session, digest)
        return messages.Done(finish.session, OWN[self.name].identity.sign(*statement), messages.Facts())


class HandParty:
    """A party whose messages a test says one by one."""

    def __init__(self, hub, name="north", agreed=None, own=None, certificate=None):
        at_coordinator, ours = make_streams()
        at_coordinator.peer = (own or OWN[name]).certificate if certificate is None else certificate
        self.name, self.agreed, self.own = name, agreed or agree(), own or OWN[name]
        self.channel = Channel(ours, is_coordinator=False)
        self.served = asyncio.ensure_future(hub.serve(at_coordinator))

    async def greet(self, run=b"", change=lambda hello: hello):
        """Greet; returns what comes back."""
        self.challenge = await self.channel.receive()
        peer = OWN["coordinator"].certificate
        self.hello = change(
            greeting.make_hello(
                self.own, self.agreed, self.challenge, party=self.name, nonce=bytes(32), run=run, peer=peer
            )
        )
        await self.channel.send(self.hello)
        return await self.channel.receive()

    async def consent(self):
        signature = self.own.identity.sign(*greeting.consent_statement(self.agreed, RUN))
        await self.channel.send(messages.Consent(signature, messages.Facts()))
