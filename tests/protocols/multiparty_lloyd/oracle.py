"""Plain Lloyd on integers, written without the package: what every protocol must reproduce."""

from __future__ import annotations

import numpy as np


def local_sums(points, centres):
    """Sums and counts of the nearest-centre clusters; ties to the lower index."""
    distances = ((points[:, None, :] - centres[None]) ** 2).sum(axis=2)
    labels = distances.argmin(axis=1)
    k = len(centres)
    sums = np.array([points[labels == i].sum(axis=0) for i in range(k)])
    return sums, np.bincount(labels, minlength=k)


def plain_lloyd(parts, start, history):
    """Lloyd over the parties that took part in each round; returns the centres after every round."""
    centres, path = start, []
    for members in history:
        pairs = [local_sums(parts[m - 1], centres) for m in members]
        sums = np.sum([s for s, _ in pairs], axis=0)
        counts = np.sum([c for _, c in pairs], axis=0)
        centres = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
        path.append(centres)
    return path
