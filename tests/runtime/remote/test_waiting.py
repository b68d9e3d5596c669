"""Waiting for many: work in proportion to what happens, and whoever is told sees who is left."""

import asyncio

from cloister.crypto import SystemEntropy
from cloister.runtime.remote.greeting import Agreed
from cloister.runtime.remote.hub import Deadlines, Hub
from cloister.runtime.remote.member import Member
from cloister.runtime.remote.waiting import Waiting
from tests.runtime.remote.people import OWN

MANY = 600


def make_members(count):
    return [Member(name=f"party {number}") for number in range(count)]


def list_reports(count):
    """How long the list of names was each time, when one party after the other comes."""
    told, members = [], make_members(count)
    waiting = Waiting(members, lambda progress: told.append(progress.waiting_for))
    for member in members:
        waiting.report()
        del waiting.awaited[member.name]
    return told


def test_of_few_each_is_told():
    assert [len(names) for names in list_reports(5)] == [5, 4, 3, 2, 1]


def test_of_many_all_lists_together_grow_with_their_number():
    lengths = [len(names) for names in list_reports(MANY)]
    assert lengths[0] == MANY
    assert lengths[-50:] == list(range(50, 0, -1))
    assert sum(lengths) < 55 * MANY  # one for each would be 300 times as many


def test_a_wait_looks_again_at_those_to_whom_something_happened_and_at_nobody_else():
    agreed = Agreed(
        job=bytes(32),
        parties={member.name: bytes(32) for member in make_members(MANY)},
        coordinator=OWN["coordinator"].identity.public_bytes,
    )
    asked = []

    def is_missing(member):
        asked.append(member.name)
        return member.consent is None

    async def main():
        hub = Hub(OWN["coordinator"], agreed, run=bytes(16), entropy=SystemEntropy(), deadlines=Deadlines(start_s=30.0))
        waiting = asyncio.ensure_future(hub._wait(is_missing, hub.members.values(), 30.0, label="joining"))
        for member in hub.members.values():
            member.consent = bytes(64)
            hub._roster.note(member)
            await asyncio.sleep(0)
        return await waiting

    assert asyncio.run(main()) == []
    assert len(asked) <= 3 * MANY


def test_who_is_missing_again_is_waited_for_again():
    agreed = Agreed(
        job=bytes(32), parties=dict.fromkeys(("north", "harbour"), bytes(32)), coordinator=OWN["north"].certificate
    )

    async def main():
        hub = Hub(OWN["coordinator"], agreed, run=bytes(16), entropy=SystemEntropy(), deadlines=Deadlines(start_s=30.0))
        north, harbour = hub.members.values()
        is_missing = lambda member: member.consent is None  # noqa: E731
        waiting = asyncio.ensure_future(hub._wait(is_missing, hub.members.values(), 0.2, label="joining"))
        for member, consent in ((north, b"signed"), (north, None), (harbour, b"signed")):
            member.consent = consent
            hub._roster.note(member)
            await asyncio.sleep(0.01)
        return [member.name for member in await waiting]

    assert asyncio.run(main()) == ["north"]
