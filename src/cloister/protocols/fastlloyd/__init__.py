"""FastLloyd (seed 000_823ff705eefdee1c) and the thesis it grew from (001_c977ec09f5a1b369): noisy Lloyd in T rounds.

Two ways to run it, over the same rounds of multiparty Lloyd (masked sums, the coordinator's noise; or without a server,
:mod:`cloister.protocols.serverless`):

- sound, the default (:func:`plan_fastlloyd`): radius-bounded offsets from the previous centre and counts, one joint
  release a round; what the second version of the authors' code does, with discrete noise, steps that are shortened by
  what noise would have done, and idle clusters that are put to use;
- as published (:func:`plan_published`): the printed formulas, labelled with the reason where their guarantee fails.

Leakage: thesis tables 7.2 (sums and counts, offsets) and 7.3 (centroids): the coordinator learns nothing, each party
the noisy sums and centres of all rounds. Breaks if: the coordinator, which knows the noise, sees the centres; with two
parties, each subtracts itself from the noisy sum and is left with the other's sum and the same noise.

Costs per round and party: 4 k (d + 1) bytes each way (8 where the public cap on records is large), plus 36 to 46
bytes of envelope; CPU: one pass over the records.

Reading order: :mod:`.offsets` (the step), :mod:`.relocation`, :mod:`.sound` (its plan), :mod:`.published_rules`,
:mod:`.rounds`, :mod:`.published`, :mod:`.rehearsal`.
"""

from cloister.protocols.fastlloyd.offsets import Offsets
from cloister.protocols.fastlloyd.published import Preset, PublishedOptions, plan_published
from cloister.protocols.fastlloyd.published_rules import Correction, PostProcessing
from cloister.protocols.fastlloyd.rehearsal import Rehearsal, rehearse
from cloister.protocols.fastlloyd.sound import ROUNDS, FastLloydOptions, plan_fastlloyd

__all__ = [
    "ROUNDS",
    "Correction",
    "FastLloydOptions",
    "Offsets",
    "PostProcessing",
    "Preset",
    "PublishedOptions",
    "Rehearsal",
    "plan_fastlloyd",
    "plan_published",
    "rehearse",
]
