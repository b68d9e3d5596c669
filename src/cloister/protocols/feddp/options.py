"""The options of FedDP-KMeans: a job's, with its section ``[feddp]``, and the knobs and steps derived from them.

`ExtraSteps` are those of appendix E, which the theorem needs but practice mostly does not (appendix G.2).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Final, Literal

from msgspec import Meta

from cloister.job import Facts, Job, NoiseOptions
from cloister.job.noise_options import PlacementKind
from cloister.job.persons import refuse_persons
from cloister.job.refusals import check_fields, check_integer, refuse, show_value
from cloister.privacy.units import Unit
from cloister.protocol import SERVER
from cloister.protocols.guided_sums.settings import CLUSTERS_MOST, DIMENSIONS_MOST

FEDDP: Final = "feddp"
"""The protocol's name, in jobs, in results and on the wire."""
LLOYD_STEPS_MOST = 50
Variant = Literal["tight", "published"]
Share = Annotated[float, Meta(ge=1e-4, le=0.9)]
ExtraShare = Annotated[float, Meta(ge=1e-3, le=0.3)]
Weight = Annotated[float, Meta(gt=0, le=1)]
Deviation = Annotated[float, Meta(gt=0, le=2)]


@dataclass(frozen=True, kw_only=True)
class Separation:
    """The public assumptions of Lemma 16 about the mixture.

    Parameters
    ----------
    weight_min
        w_min: the least part of the records that a cluster holds.
    sigma_max
        The largest standard deviation of a cluster in any direction, where every column runs from -1 to 1.
    """

    weight_min: Weight
    sigma_max: Deviation

    def __post_init__(self) -> None:
        check_fields((FEDDP,), self)


@dataclass(frozen=True, kw_only=True)
class ExtraSteps:
    """Which steps of appendix E are taken; none by default.

    Parameters
    ----------
    separation
        Reduce the diameter first (Lemma 16); None leaves the records where they are.
    simplify
        Thin out the server's points until each remaining one represents many records (Algorithm 4).
    clear_only
        Restrict the first step to records that are three times closer to their centre than to any other (Part 2 of
        Algorithm 5).
    simplify_share, separation_share
        Parts of the budget for the first two.
    """

    separation: Separation | None = None
    simplify: bool = False
    clear_only: bool = False
    simplify_share: ExtraShare = 0.15
    separation_share: ExtraShare = 0.05

    def __post_init__(self) -> None:
        check_fields((FEDDP,), self)

    @classmethod
    def algorithm_5(cls, *, weight_min: float, sigma_max: float) -> ExtraSteps:
        """Return all of them: the whole of Algorithm 5, with as many steps of Lloyd's algorithm as the settings say."""
        separation = Separation(weight_min=weight_min, sigma_max=sigma_max)
        return cls(separation=separation, simplify=True, clear_only=True)

    @property
    def share(self) -> float:
        """The part of the budget that they take."""
        return self.simplify_share * self.simplify + self.separation_share * (self.separation is not None)


@dataclass(frozen=True, kw_only=True)
class FeddpKnobs:
    """Advanced settings. The defaults were tuned on other mixtures than the paper's (docs/study-feddp.md).

    Parameters
    ----------
    count_share, moment_share, weight_share
        Parts of the budget for the number of records, their second moments, and the weights of the server's points;
        the rest goes to the steps of Lloyd's algorithm.
    restarts
        How often the server's points are clustered from another start.
    """

    count_share: Share = 0.01
    moment_share: Share = 0.20
    weight_share: Share = 0.08
    restarts: Annotated[int, Meta(ge=1, le=1000)] = 30

    def __post_init__(self) -> None:
        check_fields((FEDDP,), self)


@dataclass(frozen=True, kw_only=True)
class FeddpSection(FeddpKnobs):
    """The optional section ``[feddp]`` of a job.

    Parameters
    ----------
    lloyd_steps
        Steps of Lloyd's algorithm after the first centres; None for the variant's.
    sample
        How many parties are asked in each round, in a new public sample each time; None for all.
    simplify, clear_only
        As in `ExtraSteps`.
    weight_min, sigma_max
        As in `Separation`; both or neither.
    """

    lloyd_steps: Annotated[int, Meta(ge=0, le=LLOYD_STEPS_MOST)] | None = None
    sample: int | None = None
    simplify: bool = False
    clear_only: bool = False
    weight_min: Weight | None = None
    sigma_max: Deviation | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [key for key in ("weight_min", "sigma_max") if getattr(self, key) is not None]
        if len(given) == 1:
            refuse((FEDDP, *given), "be given together with the other of weight_min and sigma_max", "one", "Add it.")

    @property
    def knobs(self) -> FeddpKnobs:
        """The knobs among its keys."""
        return FeddpKnobs(**{knob.name: getattr(self, knob.name) for knob in fields(FeddpKnobs)})

    @property
    def extra_steps(self) -> ExtraSteps:
        """What appendix E adds."""
        separation = None
        if self.weight_min is not None and self.sigma_max is not None:
            separation = Separation(weight_min=self.weight_min, sigma_max=self.sigma_max)
        return ExtraSteps(separation=separation, simplify=self.simplify, clear_only=self.clear_only)


class FeddpOptions(NoiseOptions, frozen=True, tag=FEDDP):
    """Options of FedDP-KMeans.

    Attributes
    ----------
    variant
        ``tight``: ours. ``published``: Algorithms 1 and 2 with the splits of appendix G.4.
    section
        Advanced settings: the section ``[feddp]``.
    """

    facts = Facts(
        budget="required",
        units=(Unit.RECORD, Unit.PERSON, Unit.CLIENT),
        data_keys=frozenset({SERVER, "records"}),
        section="section",
        clusters_most=CLUSTERS_MOST,
        dimensions_most=DIMENSIONS_MOST,
    )
    variant: Variant = "tight"
    section: FeddpSection = FeddpSection()

    @property
    def variant_in_words(self) -> str:
        """How this run differs from the protocol's default; empty if it does not."""
        return "as published" if self.variant == "published" else ""

    def resolve_placement(self, parties: int) -> PlacementKind:
        """In the published variant, and where rounds ask a sample of the parties, the coordinator adds the noise."""
        if self.placement is None and (self.variant == "published" or self.section.sample is not None):
            return "aggregator"
        return super().resolve_placement(parties)

    def check(self, job: Job) -> None:
        """Refuse what the chosen variant or placement does not take."""
        super().check(job)
        for i, party in enumerate(job.parties):
            if party.name == SERVER:
                what_to_do = "That is the name of the server's data: choose another."
                refuse(("parties", i, "name"), f"not be {SERVER} with the protocol {FEDDP}", "it", what_to_do)
        if self.section.sample is not None:
            self._check_sample(self.section.sample, len(job.parties))
        if self.variant == "published":
            self._check_published(job)

    def _check_sample(self, sample: int, parties: int) -> None:
        check_integer((FEDDP, "sample"), sample, self.resolve_min_parties(parties), parties)
        if self.resolve_placement(parties) != "aggregator":
            what_to_do = "Parties' shares of the noise are meant for all of them: remove one of the two."
            refuse((FEDDP, "sample"), "be left out where parties add the noise", str(sample), what_to_do)

    def _check_published(self, job: Job) -> None:
        given = 'with variant = "published"'
        refuse_persons(job, given)
        if job.budget is not None and job.budget.unit is Unit.CLIENT and job.data.records is None:
            what_to_do = "How long a client's vectors may be must follow from public values (appendix G.5)."
            refuse(("data", "records"), f'be declared {given} and unit = "client"', "none", what_to_do)
        if self.resolve_placement(len(job.parties)) != "aggregator":
            what_to_do = "The paper's server adds the noise: remove it."
            refuse(("protocol", "placement"), f"be left out {given}", show_value(self.placement), what_to_do)
        if self.section != FeddpSection(lloyd_steps=self.section.lloyd_steps):
            what_to_do = "The published splits are fixed and its steps are as printed: remove the others."
            refuse((FEDDP,), f"have no keys but lloyd_steps {given}", "others", what_to_do)
