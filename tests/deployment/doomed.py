"""Processes of Cloister, some of which kill themselves. They are forked from one that has imported everything.

A doom is a kind, when, and for faults of the disk a seed:

- ``before`` a request is handled, ``inside``, when it is handled and nothing is written down, ``after`` it is written
  and before the answer leaves: with the number of what its role has written down in the clustering, from 1. ``labels
  after`` is in the session for labels only. ``hang`` does not end.
- ``paid``, when the ledger has been charged and nothing released; ``found``, when the session has ended and no result
  is written.
- ``message``: at the n-th place before or after a message of a connection.
- ``disk kill``, ``disk half``, ``disk full``, ``disk cut``: at the n-th step by which a file of its own is changed, as
  in `tests.privacy.ledger.faults`.
"""

import faulthandler
import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path

from cloister.cli import app
from cloister.deployment import record
from cloister.deployment.party_run import PartyRun
from cloister.deployment.payment import Payment
from cloister.privacy.ledger import LedgerSession
from cloister.report import folder
from cloister.runtime.remote import messages
from cloister.runtime.remote.channel import Channel
from cloister.runtime.resuming import Memory
from cloister.wire import PartyEndpoint
from tests.deployment.namespaces import enter
from tests.privacy.ledger.faults import Fault, install

COPY, MUTANT, NAMESPACE = "-after-power-cut", "CLOISTER_TEST_MUTANT", "CLOISTER_TEST_NAMESPACE"


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def arm(instant, record):
    finish, begin, charge, complete = Memory.finish, Memory.begin, LedgerSession.charge_all, PartyRun._complete

    kind, _, instant = instant.rpartition(" ")

    def begin_record(self, number, frames, kept=None):
        if kind not in ("", self._journal.path.name):
            begin(self, number, frames, kept)
            self.number = -1
            return
        if instant == "before" and number == record and kept is None:
            die()
        if instant == "hang" and number == record:
            os.write(2, b"hangs\n")
            time.sleep(600)
        begin(self, number, frames, kept)
        self.number = number

    def finish_record(self, frames, answer):
        if instant == "inside" and self.number == record:
            die()
        finish(self, frames, answer)
        if instant == "after" and self.number == record:
            die()

    def charge_all(self, releases):
        charge(self, releases)
        if instant == "paid":
            die()

    def complete_run(self):
        if instant == "found":
            die()
        complete(self)

    Memory.begin, Memory.finish = begin_record, finish_record
    LedgerSession.charge_all, PartyRun._complete = charge_all, complete_run


def forget_answers():
    """A journal keeps nothing of what a role answered."""
    Memory.finish = lambda self, frames, answer: None


def pay_again():
    """A session that goes on pays once more."""
    LedgerSession.resume = lambda self, releases, has_journal: self.charge_all(releases) or True


def pay_nothing():
    """A session is taken to have paid."""
    Payment.make = lambda self: None


def wipe_first():
    """Journals are wiped before the result is kept."""
    complete = PartyRun._complete

    def wipe_and_complete(self):
        self._place.files.wipe()
        complete(self)

    PartyRun._complete = wipe_and_complete


def leave_unsynced():
    """A result and a record reach the disk some time."""
    folder._sync_file = folder.sync_folder = record.sync_folder = lambda path: None


def answer_anew():
    """A request that comes again is handled again."""
    PartyEndpoint.has_answered = lambda self, frame: False


MUTANTS = {
    one.__name__: one for one in (forget_answers, pay_again, pay_nothing, wipe_first, leave_unsynced, answer_anew)
}


def arm_disk(own, kind, step, seed):
    """Let the disk fail under the role's own folder; counts steps if there is no step."""
    fault = Fault(kind=kind, step=step, seed=seed, disk=own, copy=own.with_name(own.name + COPY))
    fault.sync_all()
    install(fault)
    return fault


def watch_messages(told, step, begun):
    """Write down every request and reply that passes, as hashes; die at a place before or after a message."""
    send, receive, places = Channel.send, Channel.receive, []

    def reach(message):
        if not isinstance(message, messages.Status):  # they come by the clock
            if not places:
                begun.write_bytes(b"")  # past the faults of the disk
            places.append(message)
            if len(places) == step:
                die()

    def note(channel, message):
        if isinstance(message, messages.Start):
            channel.kind = message.kind
        elif isinstance(message, messages.Request | messages.Reply):
            line = [channel.kind, message.number, type(message).__name__, hashlib.sha256(message.frame).hexdigest()]
            with told.open("ab", buffering=0) as file:
                file.write(json.dumps(line).encode() + b"\n")

    async def send_noted(self, message):
        reach(message)
        note(self, message)
        await send(self, message)
        reach(message)

    async def receive_noted(self):
        message = await receive(self)
        note(self, message)
        reach(message)
        return message

    Channel.send, Channel.receive = send_noted, receive_noted
    return places


def run(place, command, environment, doom, out, told=None):
    """Be one process: from here on, everything is as after ``python -m cloister``.

    With ``told`` it writes down what passes there, and at its end how many steps of each kind there were.
    """
    os.chdir(place)
    if NAMESPACE in environment:
        enter(environment[NAMESPACE])
    os.environ.update(environment)
    for stream, suffix in ((sys.stdout, "out"), (sys.stderr, "err")):
        file = os.open(f"{out}.{suffix}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, stream.fileno())
    signal.signal(signal.SIGINT, signal.default_int_handler)
    faulthandler.register(signal.SIGUSR1)
    kind, number, *seed = doom or ("", 0)
    fault, places = None, None
    if environment.get(MUTANT):
        MUTANTS[environment[MUTANT]]()
    if told is not None:
        places = watch_messages(Path(told), number if kind == "message" else None, Path(f"{out}.begun"))
    if kind.startswith("disk "):
        fault = arm_disk(Path(environment["XDG_DATA_HOME"]).parent, kind.removeprefix("disk "), number, *seed)
    elif kind not in ("", "message"):
        arm(kind, number)
    try:
        app(command)
    finally:
        if fault is not None and number is None:
            Path(f"{out}.steps").write_text(json.dumps({"disk": fault.steps, "message": len(places or ())}))
