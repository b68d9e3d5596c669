"""Exact arithmetic: real numbers on a fixed-point grid, vectors of whole numbers, the rings Z_2^32 and Z_2^64."""

from cloister.numeric.fixed_point import FixedPoint, find_reach
from cloister.numeric.ring import RING32, RING64, Ring, choose_ring

__all__ = ["RING32", "RING64", "FixedPoint", "Ring", "choose_ring", "find_reach"]
