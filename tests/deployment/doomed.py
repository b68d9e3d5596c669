"""Processes of Cloister, some of which kill themselves. They are forked from one that has imported everything.

A doom is an instant and a number: of what its role has written down in the clustering, from 1. ``before`` the request
is handled, ``inside``, when it is handled and nothing is written down, ``after`` it is written and before the answer
leaves; ``hang`` does not end; ``paid`` is when the ledger has been charged and nothing released; ``found`` when the
session has ended and no result is written. ``labels after`` is in the session for labels only.
"""

import os
import signal
import sys
import time

import grpc.aio

import cloister.deployment.record
import cloister.report.text
from cloister.cli import app
from cloister.deployment.party_run import PartyRun
from cloister.privacy.ledger import LedgerSession
from cloister.runtime.resuming import Memory

PRELOADED = (grpc, cloister.report.text, cloister.deployment.record)


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


def run(folder, command, environment, doom, out):
    """Be one process: from here on, everything is as after ``python -m cloister``."""
    os.chdir(folder)
    os.environ.update(environment)
    for stream, suffix in ((sys.stdout, "out"), (sys.stderr, "err")):
        file = os.open(f"{out}.{suffix}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, stream.fileno())
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if doom is not None:
        arm(*doom)
    app(command)
