"""A process for the tests of pipes: three parties are asked for a number in each of some rounds; numbers are added up.

A party can be told to misbehave in a round; the coordinator needs two of the parties in each.
"""

import os
import select
import sys
import time
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from cloister.errors import BudgetError, DataError, RemoteProtocolError
from cloister.roles import Ask, Dropped, expect, require_members
from cloister.runtime.piped_role import Pipe, PipedRole, serve
from cloister.wire import Codec, CoordinatorEndpoint, PartyEndpoint

SESSION = bytes(16)


class Question(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    round: int


class Number(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    value: int
    padding: bytes = b""


CODEC = Codec("toy", requests=Question, replies=Number)


class ToyTask(Struct, frozen=True, kw_only=True):
    """What a role is told; ``trouble`` is one of `Party.trouble`, in a round."""

    number: int
    rounds: int = 3
    trouble: str = ""
    at: int = -1


@dataclass(frozen=True)
class Outcome:
    rounds: int
    complete: bool
    total: float


def coordinate(rounds):
    total, complete = 0, True
    for number in range(rounds):
        requests = dict.fromkeys((1, 2, 3), Question(number))
        answers = yield Ask(label=f"round {number}", requests=requests, check=expect(Number), steps=rounds)
        here = {party: answer for party, answer in answers.items() if not isinstance(answer, Dropped)}
        complete &= len(here) == len(requests)
        require_members(len(here), 2, len(requests))
        total += sum(answer.value for answer in here.values())
    return Outcome(rounds, complete, float(total))


class Party:
    """Answers its number, and counts its rounds: what it loses when it is started anew."""

    def __init__(self, task):
        self._task, self._next = task, 0
        self.answered = []

    def handle(self, request):
        if request.round != self._next and self._task.trouble != "misses":
            raise RemoteProtocolError(f"rounds must come in order; got {request.round} after {self._next - 1}.")
        if request.round == self._task.at:
            self.make_trouble()
        self._next = request.round + 1
        self.answered.append(request.round)
        return Number(self._task.number, bytes(10 * 2**20 if self._is("is long") else 0))

    def _is(self, trouble):
        return self._task.trouble == trouble and self._next - 1 == self._task.at

    def make_trouble(self):
        match self._task.trouble:
            case "sleeps":
                time.sleep(600)
            case "is late":
                select.select([sys.stdin], [], [])  # until it is asked again
            case "dies":
                os._exit(3)
            case "announces too much":
                os.write(PIPES[0].sink, (2**31).to_bytes(4, "little"))
                time.sleep(600)
            case "speaks gibberish":
                os.write(PIPES[0].sink, (4).to_bytes(4, "little") + b"\xc1\xc1\xc1\xc1")
                time.sleep(600)
            case "prints":
                sys.stdout.write("to standard output\n")
                sys.stdout.flush()
            case "has no budget":
                raise BudgetError("a release must fit; this does not.")


class Opening:
    def __init__(self, body):
        self._task = msgspec.msgpack.decode(body, type=ToyTask)
        if self._task.trouble == "has a bad table":
            raise DataError("a table must be readable; it is not.")
        self.identity = bytes([self._task.number])

    def seat(self, directory):
        assert directory == (b"\1", b"\2", b"\3")
        number = self._task.number
        if number == 0:
            endpoint = CoordinatorEndpoint(coordinate(self._task.rounds), codec=CODEC, session=SESSION)
            return PipedRole(endpoint=endpoint)
        party = Party(self._task)
        environment = os.environ.get("TOY", "")

        def find(outcome):
            return msgspec.msgpack.encode([outcome, party.answered, environment, os.getpid()])

        return PipedRole(endpoint=PartyEndpoint(party, number=number, codec=CODEC, session=SESSION), find=find)


class OpenPipe(Pipe):
    """A pipe that can be written past."""

    @property
    def sink(self):
        return self._sink.fileno()


PIPES = []

if __name__ == "__main__":
    PIPES.append(OpenPipe.claim())
    serve(Opening, PIPES[0])
