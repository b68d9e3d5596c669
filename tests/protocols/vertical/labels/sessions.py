"""Builds sessions for labels: random records, cells and centres, and what the labels must be."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cloister.protocols.vertical.labels.agreement import LabelsAgreement
from cloister.protocols.vertical.labels.session import LabelRoles
from cloister.protocols.vertical.layout import join_cells
from cloister.protocols.vertical.settings import Settings
from cloister.protocols.vertical.statistics import decide_labels
from tests.sessions import Session, make_directory


@dataclass
class Case:
    """One session's roles; parties are numbered from 1, and the first computes."""

    columns: tuple = ((0,), (1, 2))
    cells: tuple = (6,)
    key_holder: int = 2
    granted: tuple = (1,)
    model: str = "two-party"
    records: int = 300
    clusters: int = 4
    seed: int = 3
    changes: dict = field(default_factory=dict)

    def __post_init__(self):
        rng = np.random.default_rng(self.seed)
        width = sum(map(len, self.columns))
        self.table = rng.uniform(-1, 1, (self.records, width))
        self.encrypted = tuple(i for i, held in enumerate(self.columns, 1) if held and i != 1)
        reps = tuple(
            rng.uniform(-1, 1, (count, len(self.columns[party - 1])))
            for party, count in zip(self.encrypted, self.cells, strict=True)
        )
        self.terms = {
            "settings": Settings(
                clusters=self.clusters,
                columns_alice=self.columns[0],
                columns_encrypted=tuple(self.columns[party - 1] for party in self.encrypted),
                records=self.records,
                residuals=False,
            ),
            "model": self.model,
            "computing": 1,
            "encrypted": self.encrypted,
            "key_holders": (self.key_holder,),
            "directory": make_directory(self.seed, len(self.columns)),
            "reps": reps,
            "centres": rng.uniform(-1, 1, (self.clusters, width)),
            "granted": self.granted,
        } | self.changes

    def agreement(self, **changes):
        return LabelsAgreement(**(self.terms | changes))

    def part(self, party):
        return np.ascontiguousarray(self.table[:, list(self.columns[party - 1])])

    def run(self, *, agreements=None, **options):
        """Run the session; returns its parties and the run."""
        agreement = self.agreement()
        session = Session(LabelRoles(), agreement, [self.part(i) for i in self.numbers], seed=self.seed)
        parties = None
        if agreements is not None:
            inputs = zip(self.numbers, agreements, session.inputs, strict=True)
            parties = [session.roles.seat(own, session.seat(number), brought) for number, own, brought in inputs]
        run, parties = session.run(parties, restart=None, **options)
        return parties, run

    @property
    def numbers(self):
        return range(1, len(self.columns) + 1)

    @property
    def wanted(self):
        """The labels: what Alice would decide if she knew every record's cells."""
        agreement = self.agreement()
        own = [agreement.codebook_of(i).assign(self.part(party)) for i, party in enumerate(self.encrypted)]
        joint = join_cells(own, self.cells)
        decided = decide_labels(self.part(1), agreement.joint_reps, agreement.session_centres)
        return decided[joint, np.arange(self.records)]
