"""The synopsis as a protocol object: its parameters, and what its reader must know."""

from __future__ import annotations

from functools import partial

from cloister.errors import ConfigError
from cloister.forecast.model import Forecast, PlanRequest
from cloister.job import Job
from cloister.numeric import FixedPoint
from cloister.protocol import PublicInput, placeholder_directory
from cloister.protocols.guided_sums.algorithm import GuidedFinding, GuidedSession, Result, ScaledResult
from cloister.protocols.guided_sums.protocol import GuidedClustering, agree_on_sums, note_declared
from cloister.protocols.synopsis.options import SynopsisOptions
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.protocols.synopsis.plan import forecast_synopsis
from cloister.protocols.synopsis.settings import SIGNAL_LEAST, SYNOPSIS, Settings, SpreadSettings, describe_signal


class Synopsis(GuidedClustering[Settings]):
    """The default protocol: differentially private from end to end."""

    Options = SynopsisOptions
    source = "docs/proofs/synopsis.md"
    totals = "counts, moments, histogram and sums over all parties' records, round by round"
    public = (
        "columns, bounds, k or the most it may be, the budget, the rounds and their lengths, who takes part and who "
        "missed which round"
    )
    remedy = "Raise epsilon, or use fewer clusters or columns or narrower bounds"

    def agree(self, job: Job, directory: tuple[bytes, ...], public: PublicInput) -> GuidedSession[Settings]:
        """Translate a job."""
        settings = make_settings(job)
        return GuidedSession(
            agreement=agree_on_sums(job, settings, directory),
            algorithm=run_synopsis,
            result=ScaledResult if isinstance(settings, SpreadSettings) else Result,
        )

    def explain_choice(self, job: Job, others: str) -> str:
        """Say why it is used."""
        if len(job.parties) == 1:
            return f"there is one table, which {self.name} clusters with noise."
        return f"rows are split across organisations, so the default, {self.name}, is used; also: {others}."

    def list_notes(self, settings: Settings, found: GuidedFinding, *, idle: int) -> tuple[str, ...]:
        """What else the reader must know."""
        notes, layout = [], found.layout
        assert layout is not None  # this algorithm lays a grid
        if settings.choose_k:
            notes.append(f"The synopsis chose k = {len(found.centres)}, of at most {settings.clusters}.")
        notes += note_declared(settings)
        if isinstance(settings, SpreadSettings):
            notes += note_scale(settings, found)
        if layout.route == "projected":
            notes.append(
                f"The histogram was laid along {layout.axes} main directions of the records, which were found in noisy "
                "second moments: there are too many columns to lay it along each of them."
            )
        elif layout.axes < settings.dimensions:
            notes.append(
                f"The histogram tells only {layout.axes} of {settings.dimensions} columns apart: there are too few "
                "records, or too little budget, for more. Clusters that differ in other columns may be missed."
            )
        if idle and not settings.alone:
            were, they = ("was", "It was") if idle == 1 else ("were", "They were")
            notes.append(
                f"{idle} of {len(settings.slots)} rounds {were} not needed. {they} filled with zeros, so that no "
                "message tells which; how fast parties answer may."
            )
        return tuple(notes)

    def forecast(self, job: Job, public: PublicInput, request: PlanRequest) -> Forecast:
        """Say what a job would do, cost and find."""
        agreed = self.agree(job, placeholder_directory(job), public)
        return forecast_synopsis(job, agreed, request, self.leakage(agreed))


def note_scale(settings: SpreadSettings, found: GuidedFinding) -> tuple[str, ...]:
    """Say how well the scale was found, and which columns did not count."""
    assert found.scale is not None
    notes = []
    if found.sizes is not None:
        notes.append(describe_signal(settings.measure_signal(found.sizes.total)))
    lost = [axis.name for axis, spread in zip(settings.axes, found.scale.spread, strict=True) if spread == 0]
    if lost:
        these = "this column" if len(lost) == 1 else "these columns"
        notes.append(
            f"Nothing was told apart in {these}, which did not count; nearly all values are alike beside their bounds, "
            f"or lost in the noise: {', '.join(lost)}."
        )
    return tuple(notes)


def make_settings(job: Job) -> Settings:
    """Translate a job of the synopsis into its public settings."""
    options = job.protocol
    if not isinstance(options, SynopsisOptions) or job.budget is None:
        raise ConfigError(f"the protocol must be {SYNOPSIS} to have its settings; got {options.name}.")
    kind = partial(SpreadSettings, axes=job.coordinates) if job.scale == "spread" else Settings
    settings = kind(
        clusters=job.k,
        dimensions=job.dimensions,
        budget=job.budget,
        parties=len(job.parties),
        records=job.data.records,
        choose_k=job.choose_k,
        placement=options.make_placement(len(job.parties)),
        fixed_point=FixedPoint(options.fractional_bits),
        knobs=options.knobs,
    )
    if isinstance(settings, SpreadSettings) and settings.any_private and settings.records is not None:
        _check_signal(settings, settings.records)
    return settings


def _check_signal(settings: SpreadSettings, records: int) -> None:
    """Refuse bounds that nobody knows where a public number of records cannot show them."""
    signal = settings.measure_signal(records)
    if signal < SIGNAL_LEAST:
        raise ConfigError(
            f'bounds = "private" must come with a signal of {SIGNAL_LEAST:g} or more; {records:,} records in '
            f"{settings.dimensions} columns at this budget give {signal:.0f}. Give bounds, or raise epsilon."
        )
