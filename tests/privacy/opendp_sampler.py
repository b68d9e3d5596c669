"""OpenDP's samplers, behind its flag "contrib": what ours is compared with, in tests and in bench/privacy_cost.py."""

from functools import lru_cache

import numpy as np

from cloister.privacy.mechanisms import DiscreteGaussian


@lru_cache
def build_measurement(noise):
    """Build "add noise to a vector of 64-bit integers"."""
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    try:
        domain = domains.vector_domain(domains.atom_domain(T="i64"))
        if isinstance(noise, DiscreteGaussian):
            return measurements.make_gaussian(domain, metrics.l2_distance(T="f64"), scale=noise.sigma)
        return measurements.make_laplace(domain, metrics.l1_distance(T="i64"), scale=noise.scale)
    finally:
        mod.disable_features("contrib")


def draw_with_opendp(noise, entries):
    """Draw a discrete Gaussian or Laplace vector."""
    return np.asarray(build_measurement(noise)([0] * entries), dtype=np.int64)
