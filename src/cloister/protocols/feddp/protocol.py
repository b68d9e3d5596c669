"""FedDP-KMeans as a protocol object: its parameters, what runs without server data, what its reader must know."""

from __future__ import annotations

from dataclasses import replace

from cloister.errors import ConfigError
from cloister.forecast.model import Forecast, PlanRequest
from cloister.forecast.trials import refuse_epsilons
from cloister.job import Job, NoiseOptions
from cloister.job.refusals import refuse
from cloister.numeric import FixedPoint
from cloister.protocol import SERVER, PublicInput, StandIn, placeholder_directory
from cloister.protocols.feddp.options import FEDDP, FeddpOptions, FeddpSection
from cloister.protocols.feddp.pipeline import bind_server
from cloister.protocols.feddp.plan import forecast_feddp
from cloister.protocols.feddp.published import AUTHORS_CODE, list_plan
from cloister.protocols.feddp.settings import FeddpSettings
from cloister.protocols.guided_sums.algorithm import GuidedFinding, GuidedSession
from cloister.protocols.guided_sums.protocol import GuidedClustering, agree_on_sums, note_declared
from cloister.protocols.synopsis.options import SynopsisOptions
from cloister.records import FloatArray

NO_SERVER = (
    "The job names feddp but no server data (data.server), so the synopsis is used, which needs none and adds the "
    "same kind of noise."
)


class Feddp(GuidedClustering[FeddpSettings]):
    """Differentially private, guided by public data at the server."""

    Options = FeddpOptions
    source = "docs/proofs/feddp.md"
    totals = "moments, weights of the server's points, sums and counts over all parties' records, round by round"
    public = (
        "columns, bounds, k, the server's data, the budget, the rounds and their lengths, who takes part, who is asked "
        "in a round and who missed it"
    )
    remedy = "Raise epsilon, or use fewer clusters or columns"

    def stand_in(self, job: Job, public: PublicInput) -> StandIn | None:
        """Without server data, return a job of the synopsis."""
        if public.server is not None:
            return None
        options = _options_of(job)
        if options.variant == "published":
            what_to_do = "Name the table of the server's data."
            refuse(("data", SERVER), 'be given with variant = "published"', "none", what_to_do)
        if options.section != FeddpSection():
            what_to_do = "The synopsis would run, which does not take this section: name data.server, or remove it."
            refuse((FEDDP,), "come with server data", "none", what_to_do)
        kept = {key: getattr(options, key) for key in NoiseOptions.__struct_fields__}
        return StandIn(job=replace(job, protocol=SynopsisOptions(**kept)), why=NO_SERVER)

    def agree(self, job: Job, directory: tuple[bytes, ...], public: PublicInput) -> GuidedSession[FeddpSettings]:
        """Translate a job."""
        assert public.server is not None  # otherwise another job stands in
        settings = make_settings(job, public.server)
        return GuidedSession(
            agreement=agree_on_sums(job, settings, directory),
            algorithm=bind_server(public.server),
            points=public.server,
            plan=list_plan(settings) if settings.variant == "published" else None,
        )

    def explain_choice(self, job: Job, others: str) -> str:
        """Say why it is used."""
        variant = job.protocol.variant_in_words
        return (
            f"the job names {FEDDP}{variant and f', {variant}'} and server data: public points show where "
            "clusters may be, which leaves more of the budget for their centres. Without them it would be synopsis; "
            f"also: {others}."
        )

    def list_notes(self, settings: FeddpSettings, found: GuidedFinding, *, idle: int) -> tuple[str, ...]:
        """What else the reader must know."""
        points = settings.stamp.points
        notes = [f"The server's {points:,} points are public and not protected; they guided the search for clusters."]
        if settings.variant == "published":
            notes.append(AUTHORS_CODE)
        notes += note_declared(settings)
        if settings.sample is not None:
            notes.append(
                f"Each round asked {settings.sample_size} of {settings.parties} parties, a public sample. This saves "
                "traffic; no privacy is claimed for it."
            )
        elif idle > 0:
            were = "was" if idle == 1 else "were"
            notes.append(f"{idle} of {len(settings.slots)} rounds {were} not needed and {were} filled with zeros.")
        return tuple(notes)

    def forecast(self, job: Job, public: PublicInput, request: PlanRequest) -> Forecast:
        """Say what a job would do, cost and find."""
        refuse_epsilons(job, request)
        agreed = self.agree(job, placeholder_directory(job), public)
        assert public.server is not None
        return forecast_feddp(job, agreed, public.server, request, self.leakage(agreed))


def _options_of(job: Job) -> FeddpOptions:
    if not isinstance(job.protocol, FeddpOptions):
        raise ConfigError(f"the protocol must be {FEDDP} to have its settings; got {job.protocol.name}.")
    return job.protocol


def make_settings(job: Job, server: FloatArray) -> FeddpSettings:
    """Translate a job of FedDP-KMeans into its public settings."""
    options, section, parties = _options_of(job), _options_of(job).section, len(job.parties)
    assert job.budget is not None
    return FeddpSettings(
        clusters=job.k,
        dimensions=job.dimensions,
        budget=job.budget,
        parties=parties,
        records=job.data.records,
        placement=options.make_placement(parties),
        fixed_point=FixedPoint(options.fractional_bits),
        variant=options.variant,
        lloyd_steps=section.lloyd_steps,
        options=section.extra_steps,
        sample=section.sample,
        knobs=section.knobs,
    ).for_server(server)
