"""Attacks on guided sums without messages, at a third of the time; and mutants of the noise that several audits use."""

from dataclasses import replace

import numpy as np

from cloister.audit import audit
from cloister.crypto import Stream
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.protocol import prepare_audit
from cloister.protocols.guided_sums import attack as attacks
from cloister.protocols.guided_sums.attack import GuidedSessions, Watch

REAL_DRAW = SimulationSampler.draw


class Rehearsed(GuidedSessions):
    """The same algorithm, records and noise without messages: what `rehearse` does, for this adversary."""

    def run_once(self, tables, samplers, entropies):
        settings = self.agreed.agreement.settings
        for sampler in samplers:
            sampler.start()
        watch, totals = Watch(self.agreed.algorithm), []
        asking = watch(settings, Stream(entropies[0].bytes(32)))
        query = next(asking)
        for slot in settings.slots:
            total = samplers[0].draw(settings.noise_in(slot), slot.length)
            for table in tables:
                total[: query.length] += query.measure(table)
            totals.append(total)
            try:
                query = asking.send(total[: query.length])
            except StopIteration:
                break
        return self.unit.read(watch.queries, totals)


def run_audit(job, name, monkeypatch=None, *, runs, attack=0):
    """Audit a job or a setup by whole sessions; with ``monkeypatch``, by rehearsed ones."""
    if monkeypatch is not None:
        monkeypatch.setattr(attacks, "GuidedSessions", Rehearsed)
    prepared = prepare_audit(job)
    return audit(prepared.attacks[attack], claim=prepared.claim, stream=Stream.from_seed(5, name), runs=runs)


def half_noise(self, mechanism, entries, on_progress=None):
    return REAL_DRAW(self, replace(mechanism, sigma=mechanism.sigma / 2), entries)


def one_seed_for_two_noises(self, mechanism, entries, on_progress=None):
    return np.repeat(REAL_DRAW(self, mechanism, 1), entries)
