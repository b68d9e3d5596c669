"""Builds sessions for labels: random records, cells and centres, and what the labels must be."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cloister.crypto import SeededEntropy
from cloister.protocols.vertical.coordinator import coordinate_vertical
from cloister.protocols.vertical.decision import decide_labels
from cloister.protocols.vertical.layout import join_cells
from cloister.protocols.vertical.messages import CODEC
from cloister.protocols.vertical.settings import Settings
from cloister.protocols.vertical_labels.agreement import LabelsAgreement
from cloister.protocols.vertical_labels.parties import LabelsComputing, LabelsHolder
from cloister.runtime import run_local
from tests.harness import SESSION, identity


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
            "directory": tuple(identity(self.seed, i).public_bytes for i in range(1, len(self.columns) + 1)),
            "reps": reps,
            "centres": rng.uniform(-1, 1, (self.clusters, width)),
            "granted": self.granted,
        } | self.changes

    def agreement(self, **changes):
        return LabelsAgreement(**(self.terms | changes))

    def part(self, party):
        return np.ascontiguousarray(self.table[:, list(self.columns[party - 1])])

    def party(self, number, agreement):
        kind = LabelsComputing if number == 1 else LabelsHolder
        return kind(
            number=number,
            agreement=agreement,
            columns=self.part(number),
            identity=identity(self.seed, number),
            entropy=SeededEntropy(self.seed, f"party {number}"),
            session=SESSION,
        )

    def play(self, *, agreements=None, **options):
        """Run the session; returns its parties and the run."""
        agreement = self.agreement()
        theirs = agreements or [agreement] * len(self.columns)
        parties = [self.party(number, own) for number, own in enumerate(theirs, 1)]
        coordinator = coordinate_vertical(agreement, session=SESSION)
        return parties, run_local(coordinator, parties, codec=CODEC, session=SESSION, threads=1, **options)

    @property
    def wanted(self):
        """The labels: what Alice would decide if she knew every record's cells."""
        agreement = self.agreement()
        own = [agreement.codebook_of(i).assign(self.part(party)) for i, party in enumerate(self.encrypted)]
        joint = join_cells(own, self.cells)
        decided = decide_labels(self.part(1), agreement.joint_reps, agreement.session_centres)
        return decided[joint, np.arange(self.records)]
