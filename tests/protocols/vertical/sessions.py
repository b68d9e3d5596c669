"""Builds vertical sessions for tests: books and draws are recorded, results kept by name."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

import numpy as np

from cloister.aggregation.seed_agreement import STEPS as SEED_STEPS
from cloister.crypto import Stream, derive_key
from cloister.lattice.encryption import decrypt
from cloister.lattice.keys import SecretKeys, make_public_keys, restrict_secret_keys
from cloister.lattice.lwe import LweBatch, decrypt_lwe
from cloister.lattice.relinearisation import make_relinearisation_key
from cloister.privacy.accounting import Accountant
from cloister.privacy.placement import Shared
from cloister.privacy.release import NoiseDuty
from cloister.privacy.units import Budget
from cloister.protocol import OwnInput
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.algorithm import run_vertical
from cloister.protocols.vertical.codebook_makers import make_holder_codebook
from cloister.protocols.vertical.computing import ComputingParty
from cloister.protocols.vertical.holder import HolderParty
from cloister.protocols.vertical.protocol import Vertical, VerticalSession
from cloister.protocols.vertical.query import Query
from cloister.protocols.vertical.rehearsal import Rehearsal, rehearse_vertical
from cloister.protocols.vertical.relayed import gather_columns
from cloister.protocols.vertical.settings import Knobs, Settings
from cloister.protocols.vertical.statistics import align_records, exact_total
from cloister.protocols.vertical.uploads import Receiver, Sender
from cloister.records import ArrayRecords
from cloister.runtime import LocalRun
from tests import sessions
from tests.protocols.vertical.tables import mixture
from tests.sessions import SESSION, RecordingSampler, make_directory

KEY_SEED = b"keys of these tests are not secret"[:32]
BUDGET = Budget(epsilon=1.0, delta=1e-6)
FEW = Knobs(start_cells_least=4, start_cells_most=16, restarts=3)  # a joint histogram of at most 16 k numbers
TINY = {"start": "random", "rounds": 2, "cells": 2, "clusters": 2}
"""Six numbers an answer and two ciphertexts a record: a session takes a few hundredths of a second."""


class Seated(Vertical):
    """The protocol with classes in place of the parties' own."""

    def __init__(self, alice, holder):
        self.alice, self.holder = alice, holder

    def seat(self, agreed, seat, own, *, duty=None):
        kind = self.alice if seat.number == agreed.agreement.computing else self.holder
        return kind(seat, agreed.agreement, gather_columns(own.records), duty=duty)


class Session(sessions.Session):
    """One job's roles. Noise is seeded and every draw of it is kept.

    Parameters
    ----------
    table
        (n, d), in the job's column order.
    columns
        Which of them each party holds.
    model, computing, key_holder, threshold
        Who does what, parties numbered from 1; without a key holder it is the first other party.
    budget
        None: exact.
    alice, holder
        Classes to take instead of the parties' own.
    options
        Of ``Settings``.
    """

    def __init__(
        self,
        table,
        columns=((0,), (1,)),
        *,
        model="two-party",
        computing=1,
        key_holder=None,
        threshold=None,
        budget=BUDGET,
        seed=7,
        alice=ComputingParty,
        holder=HolderParty,
        **options,
    ):
        parties = len(columns)
        others = [number for number in range(1, parties + 1) if number != computing]
        encrypted = tuple(number for number in others if columns[number - 1])
        key_holders = tuple(others) if model == "collective" else (key_holder or others[0],)
        shares = 1 + (threshold or len(key_holders))
        self.settings = Settings(
            columns_alice=columns[computing - 1],
            columns_encrypted=tuple(columns[number - 1] for number in encrypted),
            records=len(table),
            budget=budget,
            placement=Shared(parties=shares, colluding_max=shares - 1),
            **{"clusters": 3, "rounds": 2, "knobs": FEW, **options},
        )
        self.agreement = VerticalAgreement(
            settings=self.settings,
            model=model,
            computing=computing,
            encrypted=encrypted,
            key_holders=key_holders,
            threshold=threshold,
            directory=make_directory(seed, parties),
        )
        self.table, self.columns = table, columns
        agreed = VerticalSession(agreement=self.agreement, encrypted_columns=())
        super().__init__(Seated(alice, holder), agreed, self.split(table), seed=seed)
        if budget is not None:
            self.duties = {number: self.make_duty(number) for number in self.numbers}

    def split(self, table):
        """Each party's columns of whole records."""
        return [OwnInput(records=ArrayRecords(table[:, list(own)])) for own in self.columns]

    def make_duty(self, number):
        sampler = RecordingSampler(f"party {number}", seed=self.seed)
        return NoiseDuty(charger=Accountant(self.settings.budget), sampler=sampler)

    def run(self, parties=None, **options) -> Completed:
        run, seated = super().run(parties, **options)
        return Completed(session=self, run=run, parties=seated)

    def releases(self, number):
        """What a party's books were charged for."""
        return self.duties[number].charger.spent().releases


@dataclass(frozen=True, kw_only=True, eq=False)
class Completed:
    """A session that has finished."""

    session: Session
    run: LocalRun
    parties: list

    @property
    def alice(self):
        return self.parties[self.session.agreement.computing - 1]

    @property
    def totals(self):
        return self.alice.released_totals

    def queries(self) -> list[Query]:
        """What was asked: the algorithm run again on the released totals."""
        asking = run_vertical(self.session.settings, self.alice.codebooks, self.common_stream())
        queries = [next(asking)]
        for total in self.totals[:-1]:
            queries.append(asking.send(total))
        return queries

    def common_stream(self):
        return Stream(derive_key(self.alice._seed_holder.seed, "vertical stream", SESSION))

    def exact_totals(self):
        """What was asked for, without noise, computed in the clear."""
        codebooks = self.alice.codebooks
        records = align_records(self.session.table, self.session.settings.layout, codebooks)
        return [exact_total(query, records, codebooks) for query in self.queries()]

    def shares_of(self, number) -> list[list[tuple]]:
        """A party's draws of noise on totals, for each pass in which it added any: a mechanism and a vector a part."""
        agreement = self.session.agreement
        floods = number == agreement.computing and hasattr(agreement.flood, "price")
        drawn, out = list(self.session.duties[number].sampler.drawn), []
        for query, decryptors in reversed(list(zip(self.queries(), self.run.result.decryptors, strict=True))):
            if number == agreement.computing or number in decryptors:
                if floods:
                    drawn.pop()
                out.append([drawn.pop() for _ in query.parts][::-1])
        return out[::-1]

    def rehearse(self) -> Rehearsal:
        """The same algorithm with the same codebooks and the same noise, in the clear."""
        session = self.session
        samplers = []
        if not session.settings.is_exact:
            shares = {number: iter(self.shares_of(number)) for number in session.numbers}
            passes = [
                [next(shares[number]) for number in (session.agreement.computing, *decryptors)]
                for decryptors in self.run.result.decryptors
            ]
            samplers = [Replaying([draw for own in slot for draw in own]) for slot in zip(*passes, strict=True)]
        return rehearse_vertical(
            session.settings,
            session.table,
            samplers=samplers,
            stream=self.common_stream(),
            codebooks=self.alice.codebooks,
        )


class Replaying:
    """A sampler that gives out what was drawn before, if it is asked for the same mechanism."""

    is_simulation = True

    def __init__(self, drawn):
        self._drawn = iter(drawn)

    def draw(self, mechanism, entries, on_progress=None):
        recorded, noise = next(self._drawn)
        assert (recorded, len(noise)) == (mechanism, entries)
        return noise


class Wire:
    """One session's senders and receiver, with the key in the test's hands."""

    def __init__(self, session):
        self.session, agreement = session, session.agreement
        stream = Stream.from_seed(3, "uploads")
        self.keys = SecretKeys.generate(agreement.key_parameters, 1, stream)
        public = make_public_keys(self.keys, seed=KEY_SEED, stream=stream)
        layout, settings = session.settings.layout, session.settings
        parts = [layout.holder_part(session.table, place) for place in range(len(agreement.encrypted))]
        self.codebooks = [
            make_holder_codebook(settings, place, part, duty=None, stream=stream.child("codebook", place))
            for place, part in enumerate(parts)
        ]
        self.cells = [own.assign(part) for own, part in zip(self.codebooks, parts, strict=True)]
        self.residuals = [own.residuals(p, c) for own, p, c in zip(self.codebooks, parts, self.cells, strict=True)]
        self.senders = [
            Sender(
                agreement,
                place=place,
                codebook=own,
                columns=part,
                keys=self.keys if agreement.is_seeded else None,
                public=public,
                stream=stream.child("errors", place),
            )
            for place, (own, part) in enumerate(zip(self.codebooks, parts, strict=True))
        ]
        key = make_relinearisation_key(self.keys, seed=KEY_SEED, stream=stream) if agreement.is_joint else None
        self.receiver = Receiver(agreement, public, key)

    def upload(self, number):
        return [sender.encrypt_upload(number) for sender in self.senders]

    def decrypt_blocks(self):
        """What is in the blocks: (bodies, n)."""
        blocks = [decrypt(self.keys, block.masks, block.bodies[:, None])[:, 0] for block in self.receiver.blocks]
        return np.concatenate(blocks, axis=1)

    def decrypt_sums(self, masks, bodies):
        """What is in sums over all blocks."""
        parameters = self.session.agreement.parameters
        places, secrets = np.arange(len(bodies)), np.zeros(len(bodies), dtype=np.int64)
        batch = LweBatch(parameters=parameters, masks=masks, bodies=bodies, mask_of=places, secret_of=secrets)
        return decrypt_lwe(restrict_secret_keys(self.keys, len(parameters.primes)), batch)


def same_finding(found, expected):
    """Whether two results are equal, bit for bit."""
    return all(np.array_equal(getattr(found, own.name), getattr(expected, own.name)) for own in fields(expected))


def list_steps(agreement, party, *kinds):
    """The steps of the session in which a party has a turn; of stages of these kinds only, if any are named."""
    return [
        SEED_STEPS + 1 + number
        for number, stage in enumerate(agreement.schedule)
        if party in stage.members and (not kinds or stage.kind in kinds)
    ]


CASES = {
    "two clusters": {"clusters": 2},
    "many clusters": {"columns": ((0, 1), (2, 3)), "clusters": 10, "cells": 9, "residuals": False},
    "residuals": {"columns": ((0, 1), (2, 3)), "cells": 4, "residuals": True},
    "Alice has nothing": {"columns": ((), (0, 1, 2)), "cells": 5},
    "Alice is last and has many": {"columns": ((1,), (0, 2, 3)), "computing": 2, "cells": 4},
    "two blocks, far start": {"records": 4500, "start": "random", "cells": 4, "rounds": 3},
    "server-aided": {"columns": ((0, 1), (), (2, 3)), "model": "server-aided", "key_holder": 2, "cells": 4},
    "server-aided, an idle party": {
        "columns": ((0,), (), (1,), ()),
        "model": "server-aided",
        "key_holder": 2,
        "cells": 2,
    },
    "collective": {"columns": ((0, 1), (2, 3), ()), "model": "collective", "cells": 4},
    "threshold": {"columns": ((0, 1), (2,), (), ()), "model": "collective", "threshold": 2, "cells": 2},
    "joint, one key": {
        "columns": ((0, 1), (2,), (3,)),
        "model": "server-aided",
        "key_holder": 3,
        "cells": 3,
        "start": "random",
    },
    "joint, collective": {"columns": ((), (0,), (1,)), "model": "collective", "cells": 3, "clusters": 2},
    "joint of three, threshold": {
        "columns": ((0,), (1,), (2,), (3,)),
        "model": "collective",
        "threshold": 2,
        "cells": 2,
        "clusters": 2,
        "start": "random",
        "rounds": 1,
    },
}
"""Sessions of every model, with small tables."""


def make_case(name, *, exact=False, seed=7, **options) -> Session:
    case = {**CASES[name], **options}
    columns = case.setdefault("columns", ((0,), (1,)))
    joint = sum(map(bool, columns)) - bool(columns[case.get("computing", 1) - 1]) > 1
    if exact and joint:
        case["fractional_bits"] = 6  # slots hold 16 bits less: sums are modulo a prime below 2^31
    if exact:
        case["budget"] = None
    table = mixture(case.pop("records", 300), sum(map(len, columns)), 3, seed=seed)
    return Session(table, seed=seed, **case)


@cache
def run_case(name, *, exact=False) -> Completed:
    """A case's session, run once whoever asks, with all views kept."""
    return make_case(name, exact=exact).run(record_views=True)
