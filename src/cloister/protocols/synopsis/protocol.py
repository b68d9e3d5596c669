"""The synopsis as a protocol object: its options, what it agrees on, and what its reader must know."""

from __future__ import annotations

from cloister.errors import ConfigError
from cloister.job import Facts, Job, NoiseOptions
from cloister.numeric import FixedPoint
from cloister.privacy.units import Unit
from cloister.protocol import CardMaker, Finding, PublicInput, Story
from cloister.protocols.guided_sums.coordinator import Outcome
from cloister.protocols.guided_sums.protocol import GuidedClustering, GuidedSession, agree_on_sums, describe_run
from cloister.protocols.guided_sums.settings import CLUSTERS_MOST, DIMENSIONS_MOST
from cloister.protocols.synopsis.pipeline import Finding as Found
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.protocols.synopsis.session import LEAKAGE
from cloister.protocols.synopsis.settings import SYNOPSIS, Knobs, Settings


class SynopsisOptions(NoiseOptions, tag=SYNOPSIS):
    """Options of the synopsis; none of them is needed.

    Attributes
    ----------
    knobs
        Advanced settings: the section ``[synopsis]``.
    """

    facts = Facts(
        budget="required",
        units=(Unit.RECORD, Unit.CLIENT),
        data_keys=frozenset({"records"}),
        chooses_k=True,
        section="knobs",
        clusters_most=CLUSTERS_MOST,
        dimensions_most=DIMENSIONS_MOST,
    )
    knobs: Knobs = Knobs()


class Synopsis(GuidedClustering[Settings]):
    """The default: differentially private from the first number to the last."""

    Options = SynopsisOptions
    table = LEAKAGE

    def agree(self, job: Job, directory: tuple[bytes, ...], public: PublicInput) -> GuidedSession[Settings]:
        """Translate a job."""
        return GuidedSession(agreement=agree_on_sums(job, make_settings(job), directory), algorithm=run_synopsis)

    def explain_choice(self, job: Job, others: str) -> str:
        """Say why it is used."""
        return f"rows are split across organisations, so the default, {self.name}, is used; also: {others}."

    def tell(
        self,
        job: Job,
        agreed: GuidedSession[Settings],
        finding: Finding,
        outcome: Outcome,
        make_card: CardMaker | None,
    ) -> Story:
        """Say what the reader must know; all of it public or released."""
        agreement, settings = agreed.agreement, agreed.agreement.settings
        assert make_card is not None
        remedy = "Raise epsilon, or use fewer clusters or columns or narrower bounds"
        card = make_card(describe_run(agreement, finding.details, outcome, remedy=remedy))
        return Story(
            leakage=self.leakage(agreed),
            public="columns, bounds, k or the most it may be, the budget, the rounds and their lengths, who takes part "
            "and who missed which round",
            notes=_write_notes(settings, finding.details, idle=len(settings.slots) - len(card.releases)),
            card=card,
            ring_bits=agreement.ring.bits,
        )


def make_settings(job: Job) -> Settings:
    """Translate a job of the synopsis into its public settings."""
    options = job.protocol
    if not isinstance(options, SynopsisOptions) or job.budget is None:
        raise ConfigError(f"the protocol must be {SYNOPSIS} to have its settings; got {options.name}.")
    return Settings(
        clusters=job.k,
        dimensions=len(job.columns),
        budget=job.budget,
        parties=len(job.parties),
        records=job.data.records,
        choose_k=job.choose_k,
        placement=options.make_placement(len(job.parties)),
        fixed_point=FixedPoint(options.fractional_bits),
        knobs=options.knobs,
    )


def _write_notes(settings: Settings, found: Found, *, idle: int) -> tuple[str, ...]:
    notes = []
    if settings.choose_k:
        notes.append(f"k = {len(found.centres)} was chosen by the synopsis, from at most {settings.clusters}.")
    if settings.records is not None:
        notes.append(f"The number of records, {settings.records:,}, was declared public by the job: it is not hidden.")
    if found.route == "projected":
        notes.append(
            f"The histogram was laid along {found.axes} main directions of the records, which were found in noisy "
            "second moments: there are too many columns to lay it along each of them."
        )
    elif found.axes < settings.dimensions:
        notes.append(
            f"The histogram tells only {found.axes} of {settings.dimensions} columns apart: there are too few "
            "records, or too little budget, for more. Clusters that differ in other columns may be missed."
        )
    if idle:
        were, they = ("was", "It was") if idle == 1 else ("were", "They were")
        notes.append(
            f"{idle} of {len(settings.slots)} rounds {were} not needed. {they} sent as zeros, so that the coordinator "
            "cannot tell."
        )
    return tuple(notes)
