"""FastLloyd as a protocol object: its noise plans, and attacks on its published variants."""

from __future__ import annotations

from cloister.audit import JobUnderAudit
from cloister.audit.attack import make_identities
from cloister.job import Job
from cloister.kmeans import Assignment, Unconstrained
from cloister.protocol import PublicInput
from cloister.protocols.fastlloyd.attack import declare_fewer, make_chain
from cloister.protocols.fastlloyd.options import FastLloydOptions
from cloister.protocols.fastlloyd.published import plan_published
from cloister.protocols.fastlloyd.sound import SoundSettings, plan_fastlloyd
from cloister.protocols.multiparty_lloyd.agreement import Variant
from cloister.protocols.multiparty_lloyd.attack import attack_rounds
from cloister.protocols.multiparty_lloyd.noise import NoisePlan
from cloister.protocols.multiparty_lloyd.protocol import LloydClustering, bound_records


class FastLloyd(LloydClustering):
    """Rounds of Lloyd's algorithm with noise: sound, or as some text prints it."""

    Options = FastLloydOptions

    def name_variant(self, job: Job) -> Variant:
        """Published variants are two of the thesis's protocols with other noise."""
        options = _options_of(job)
        if options.variant == "sound":
            return "fastlloyd"
        by_centroids = options.make_published_settings(job).by_centroids
        return "average-mask-noise" if by_centroids else "mask-noise-average"

    def plan_noise(self, job: Job) -> NoisePlan:
        """Plan the variant's noise."""
        options = _options_of(job)
        assert job.budget is not None
        placement = options.make_placement(len(job.parties))
        if options.variant != "sound":
            return plan_published(options.make_published_settings(job), job.budget, placement=placement)
        settings = SoundSettings(
            clusters=job.k,
            dimensions=job.dimensions,
            parties=len(job.parties),
            max_records=bound_records(job),
            kind=options.noise_kind,
            iterations=options.iterations,
            radius=options.radius,
            ring_bits=options.ring,
        )
        return plan_fastlloyd(settings, job.budget, placement=placement)

    def make_assignment(self, job: Job) -> Assignment:
        """Published variants may constrain sizes."""
        options = _options_of(job)
        if options.variant == "sound":
            return Unconstrained()
        return options.make_published_settings(job).make_assignment()

    def attacks(self, job: Job, public: PublicInput) -> JobUnderAudit:
        """Build the attacks; under size constraints on a chain of clusters."""
        if isinstance(self.make_assignment(job), Unconstrained):
            return super().attacks(job, public)
        job = declare_fewer(job, _options_of(job))
        directory = tuple(identity.public_bytes for identity in make_identities(job))
        settings = _options_of(job).make_published_settings(job)
        return attack_rounds(self, job, self.agree(job, directory, public), *make_chain(job, settings))


def _options_of(job: Job) -> FastLloydOptions:
    assert isinstance(job.protocol, FastLloydOptions)
    return job.protocol
