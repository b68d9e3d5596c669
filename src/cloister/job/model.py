"""What a job is: frozen values, one field for each key of the job file.

A job that exists is a job that holds: ``Job`` checks every rule when it is made, from a file or in Python.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Literal

from cloister.columns import Column
from cloister.job.checks import check_job
from cloister.job.defaults import PROTOCOL
from cloister.job.feddp_section import FeddpSection
from cloister.job.vertical_roles import VerticalModel
from cloister.privacy.units import Budget
from cloister.protocols.align.terms import IdKind
from cloister.protocols.fastlloyd import Correction, Preset
from cloister.protocols.multiparty_lloyd.agreement import Initialisation
from cloister.protocols.synopsis.settings import Knobs
from cloister.protocols.vertical.settings import VERTICAL

ProtocolName = Literal[
    "synopsis",
    "feddp",
    "fastlloyd",
    "secfc",
    "vertical",
    "naive",
    "masked-sum-count",
    "masked-centroid",
    "mask-noise-average",
]
FastLloydVariant = Literal["sound"] | Preset
Starter = Literal["parties", "coordinator", "job"]
AssignmentName = Literal[
    "unconstrained",
    "constrained-non-exclusive",
    "constrained-exclusive",
    "constrained-e-exclusive",
    "distance-constrained",
]


@dataclass(frozen=True, kw_only=True)
class ProtocolOptions:
    """The section ``[protocol]``: which protocol, and how it runs.

    Options that only some protocols take are None where they are not given; ``defaults`` says what None stands for.
    One that does not apply is refused.

    Attributes
    ----------
    name
        The synopsis (default); FedDP-KMeans, with server data; FastLloyd; SecFC; vertical, for different columns of the
        same records; or of the thesis: naive (5.2), masked sum/count (5.3), masked centroid (5.4), or mask, noise then
        average (7.2.4).
    fractional_bits, ring
        The fixed-point grid 2^-fractional_bits, and the width of the ring of the masked sums.
    min_parties
        The run aborts when fewer parties answer. By default three, where there are as many: in a sum of two each could
        subtract itself.
    placement, colluding_max, honest_fraction
        In private protocols: who adds the noise: the coordinator (default), every party a share that up to
        ``colluding_max`` of them may tell each other, or every party all of it; or, in a ring, all parties together.
        ``honest_fraction`` says the same as a part: 0.6 of 10 parties leaves 4 that may collude.
    topology
        With ``fastlloyd`` and ``mask-noise-average``: a star around the coordinator (default), or a ring of parties
        without a server.
    variant
        With ``fastlloyd``: sound (default), or one of the published ones. With ``feddp``: tight (default) or published.
    iterations
        Rounds of Lloyd's algorithm; 10 by default, with ``fastlloyd`` 12 or by the published rule. This and what
        follows is for all but the synopsis.
    initialisation, start_by, start
        Where the first centres come from; ``starter`` says who makes them when ``start_by`` is left out. With
        ``vertical``: ``"synopsis"`` (default) or ``"random"``.
        ``start`` goes with ``"given"``: k rows, in original units.
    tolerance
        The naive coordinator stops when no centre moved further than this, in unit scaling. 0: never.
    assignment, size_min, size_max, alpha_min, alpha_max, memberships_max, radius
        The local assignment (thesis 4.1, FastLloyd 7.1) and its constraints. ``radius`` is in unit scaling.
    noise, norm_bound
        Gaussian (default) or Laplace noise; with ``mask-noise-average`` a bound on a record's length in unit scaling
        (longer records are shortened to it; the noise shrinks with it).
    postprocess, rho
        With a published variant: what is done with noisy sums, counts and centres outside their domains; and the
        average coordinate of a centre, by which the budget is split between sums and counts.
    privacy, segments, coordinate_bits, separate_after
        With ``secfc``: how many clients may collude (a third by default), into how many segments a record is cut (1),
        the bits of a coordinate (as many as fit), and after how many rounds clusters are separated once (never).
    computing, model, key_holder, threshold
        With ``vertical``: the party that computes on ciphertexts, and who can decrypt; ``vertical_roles`` has what they
        are where they are left out. ``colluding_max`` goes with ``model = "collective"``.
    cells, residuals, offset_bits
        With ``vertical``: the cells of each encrypted party's codebook, whether what a cell leaves of a record is
        encrypted too, and the bits after the point of what is added up.
    labels
        With ``vertical``: the parties that get the labels of their records.
    """

    name: ProtocolName = PROTOCOL
    fractional_bits: int = 16
    ring: Literal["auto", 32, 64] = "auto"
    min_parties: int | None = None
    placement: Literal["aggregator", "shared", "local", "joint"] | None = None
    colluding_max: int | None = None
    honest_fraction: float | None = None
    topology: Literal["star", "ring"] | None = None
    variant: FastLloydVariant | Literal["tight"] | None = None
    iterations: int | None = None
    initialisation: Initialisation | Literal["synopsis"] | None = None
    start_by: Literal["parties", "coordinator"] | None = None
    start: tuple[tuple[float, ...], ...] | None = None
    tolerance: float | None = None
    assignment: AssignmentName | None = None
    size_min: int | None = None
    size_max: int | None = None
    alpha_min: float | None = None
    alpha_max: float | None = None
    memberships_max: int | None = None
    radius: float | None = None
    noise: Literal["gaussian", "laplace"] | None = None
    norm_bound: float | None = None
    postprocess: tuple[Correction, Correction, Correction] | None = None
    rho: float | None = None
    privacy: int | None = None
    segments: int | None = None
    coordinate_bits: int | None = None
    separate_after: int | None = None
    computing: str | None = None
    model: VerticalModel | None = None
    key_holder: str | None = None
    threshold: int | None = None
    cells: int | None = None
    residuals: bool | None = None
    offset_bits: int | None = None
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        rows = getattr(self.start, "tolist", None)  # a NumPy array is as good as rows
        if callable(rows):
            object.__setattr__(self, "start", tuple(map(tuple, rows())))

    def resolve_min_parties(self, parties: int) -> int:
        """Return ``min_parties``, or its default for so many parties."""
        if self.min_parties is not None:
            return self.min_parties
        least = min(3, parties)
        colluding = self.resolve_colluding_max(parties)
        if self.placement == "shared" and colluding is not None:
            least = max(least, parties - colluding + 1)  # a party knows its own share of the noise
        return least

    def resolve_colluding_max(self, parties: int) -> int | None:
        """Return ``colluding_max``, or how many the honest part leaves; None where neither is given."""
        if self.honest_fraction is None:
            return self.colluding_max
        return parties - math.ceil(Fraction(str(self.honest_fraction)) * parties)  # 0.28 of 25 is 7, in doubles more

    @property
    def full_variant(self) -> str:
        """How this run differs from the protocol's default, in words; empty if it does not."""
        parts = []
        if self.is_published:
            parts.append("as published" if self.variant == "published" else f"{self.variant} as published")
        if self.topology == "ring":
            parts.append("in a ring")
        return ", ".join(parts)

    @property
    def is_published(self) -> bool:
        """Whether this is as some text prints it."""
        return self.variant not in (None, "sound", "tight")

    @property
    def starter(self) -> Starter:
        """Who makes the first centres.

        The parties from their common seed (thesis 5.1.1), the coordinator (5.1.2), or the job itself. The
        naive protocol has no common seed, so there the coordinator draws them.
        """
        if self.initialisation == "given":
            return "job"
        if self.start_by is not None:
            return self.start_by
        return "coordinator" if self.name == "naive" else "parties"


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """The section ``[data]``: how tables are read.

    Attributes
    ----------
    match
        Whether the columns must stand in the job's order or are found by name.
    max_records
        A public cap on the records of one party. It bounds the sums, so that a small ring is known to fit.
    records
        With ``synopsis``, ``feddp`` and ``fastlloyd``: the number of records of all parties together, declared public,
        also where a unit is a whole client. None keeps it private: synopsis and feddp then release it with noise, the
        sound FastLloyd does without, and its published variants need it. With ``vertical``: the number of aligned
        records, which is public; a run refuses another one.
    server
        With ``feddp``: the table of the server's data, relative to the job's folder. It is public: everyone has it.
    id
        With ``secfc`` and ``vertical``: the column of record IDs, by which parties align privately first; or, where
        each names its alignment, by which the tables are recognised.
    id_form, id_trim, id_ignore_case
        With ``vertical``: what makes two IDs equal, as the options of ``cloister align``.
    aligned
        With ``vertical``: the tables hold the same records in the same order already.
    """

    match: Literal["order", "name"] = "order"
    max_records: int | None = None
    records: int | None = None
    server: str | None = None
    id: str | None = None
    id_form: IdKind | None = None
    id_trim: bool | None = None
    id_ignore_case: bool | None = None
    aligned: bool | None = None


@dataclass(frozen=True, kw_only=True)
class JobParty:
    """One of ``[[parties]]``: its name, and in a simulation the table that it holds.

    ``data`` is relative to the job's folder; None in a job made in Python whose tables are passed in. ``dataset`` is
    what the party's ledger calls these records, so that a table that grows stays under one cap; without it the ledger
    recognises them by their content.

    ``columns`` and ``alignment`` are for ``vertical``: which of the job's columns the party holds, in the order of its
    table, and where its alignment lies, relative to the job's folder.
    """

    name: str
    data: str | None = None
    dataset: str | None = None
    columns: tuple[str, ...] | None = None
    alignment: str | None = None


@dataclass(frozen=True, kw_only=True)
class Job:
    """A checked job.

    Attributes
    ----------
    name
        Letters, digits, ``-`` and ``_``.
    protocol, data, budget
        The sections of the same name.
    k
        ``clusters.k``; where k is to be chosen, ``clusters.k_max``.
    choose_k
        ``clusters.choose_k``: let the synopsis find out how many clusters there are, at most ``k``.
    columns
        The columns in the order of the centres, with public bounds.
    parties
        At least two, with different names.
    network
        ``network.model``: the name of a network model, or None.
    seed
        ``run.seed``: makes a simulation reproducible, and its masks and noise known to whoever knows the seed.
    secure
        ``run.secure``: keys and noise must come from the operating system; a seed is refused.
    ledger
        ``ledger.path``, relative to the folder.
    synopsis, feddp
        The sections of the same name: advanced settings, or None.
    folder
        The folder that relative paths start from: that of the job file.

    Raises
    ------
    ConfigError
        If a rule does not hold.
    """

    name: str
    k: int
    columns: tuple[Column, ...]
    parties: tuple[JobParty, ...]
    choose_k: bool = False
    protocol: ProtocolOptions = field(default_factory=ProtocolOptions)
    data: DataOptions = field(default_factory=DataOptions)
    network: str | None = None
    seed: int | None = None
    secure: bool = False
    budget: Budget | None = None
    ledger: str | None = None
    synopsis: Knobs | None = None
    feddp: FeddpSection | None = None
    folder: Path = Path()

    def __post_init__(self) -> None:
        check_job(self)

    def find_data(self, party: JobParty) -> Path | None:
        """Return where a party's table lies, or None when the job does not say."""
        return None if party.data is None else self.folder / party.data

    def find_alignment(self, party: JobParty) -> Path | None:
        """Return where a party's alignment lies, or None when the job does not say."""
        return None if party.alignment is None else self.folder / party.alignment

    def find_columns(self, party: JobParty) -> tuple[Column, ...]:
        """Return what a party's table holds: all columns; in a vertical job its own, in its own order."""
        if self.protocol.name != VERTICAL:
            return self.columns
        columns = {column.name: column for column in self.columns}
        return tuple(columns[name] for name in party.columns or ())
