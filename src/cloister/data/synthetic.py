"""Made-up records with their ground truth, as plans draw them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.records import FloatArray, IntArray

SYNTH_OVERLAPPING, SYNTH_SEPARATED = 0.21, 0.70
"""Separation indices (Qiu and Joe 2006) of clusters that overlap and of some that do not (FastLloyd 6.1)."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A data set with its ground truth."""

    points: FloatArray
    """(n, d)."""
    labels: IntArray
    """(n,): the cluster of each point, as the generator's paper defines it."""
    centres: FloatArray
    """(k, d): the means that the clusters were drawn around."""


def scale_to_domain(sample: Sample) -> Sample:
    """Map each column's extremes to [-1, 1], as the papers prepare their data (FastLloyd 6.1).

    For studies only: it treats the extremes as public, which those of real records are not.
    """
    low, high = sample.points.min(axis=0), sample.points.max(axis=0)
    width = np.where(high > low, high - low, 1.0)  # a constant column goes to -1
    points, centres = (2.0 * (array - low) / width - 1.0 for array in (sample.points, sample.centres))
    return Sample(points=np.clip(points, -1.0, 1.0), labels=sample.labels, centres=centres)
