"""Where random bytes come from: the operating system, or a seed in a simulation.

Roles are handed an :class:`Entropy` and draw every key from it. The kind is visible (``is_simulation``), so that
a result made from a seed says that it is reproducible and therefore not secret.
"""

from __future__ import annotations

import secrets
from typing import Protocol

from cloister.crypto.stream import Stream
from cloister.errors import ConfigError


class Entropy(Protocol):
    """A source of secret bytes."""

    @property
    def is_simulation(self) -> bool:
        """Whether whoever knows the seed knows every byte."""

    def bytes(self, count: int) -> bytes:
        """Return ``count`` fresh bytes."""


class SystemEntropy:
    """The operating system's generator."""

    is_simulation = False

    def bytes(self, count: int) -> bytes:
        """Return ``count`` bytes from the kernel."""
        return secrets.token_bytes(count)


class SeededEntropy:
    """Reproducible bytes for simulations and tests: the same seed and label give the same bytes."""

    is_simulation = True

    def __init__(self, seed: int, label: str) -> None:
        self._stream = Stream.from_seed(seed, "entropy", label)

    def bytes(self, count: int) -> bytes:
        """Return the next ``count`` bytes of the seeded stream."""
        return self._stream.bytes(count)


def make_entropy(label: str, *, seed: int | None = None, secure: bool = False) -> Entropy:
    """Choose the source for one role.

    Parameters
    ----------
    label
        The role's name; two roles with the same seed still get independent bytes.
    seed
        Reproduces a simulation. ``None`` takes the operating system's entropy.
    secure
        Refuse a seed, because whoever knows it can remove every mask.
    """
    if seed is None:
        return SystemEntropy()
    if secure:
        raise ConfigError(
            "secure mode takes its keys from the operating system and must have no seed; got one. "
            "Remove the seed, or run a simulation."
        )
    return SeededEntropy(seed, label)
