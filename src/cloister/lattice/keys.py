"""Keys: several ternary secrets that share their masks, and the public key that belongs to them.

A holder encrypts S numbers for each record and cell (an indicator and features). Instead of S masks there is one,
under S independent secrets: the S bodies are then as good as S ciphertexts with masks of their own
(docs/proofs/lattice.md), and an answer needs one accumulated mask for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import KEY_BYTES, Entropy
from cloister.errors import ConfigError, LocalProtocolError
from cloister.lattice.ntt import Residues
from cloister.lattice.parameters import Parameters, parameters_at
from cloister.lattice.sampling import draw_errors, draw_ternary, expand_uniform


class SecretKeys:
    """S secrets with coefficients in {-1, 0, 1}; overwritten with zeros when closed.

    Python may have copied what was drawn before it came here: closing removes what this object can reach.

    Parameters
    ----------
    parameters
        The ring.
    ternary
        Coefficients (S, N), int8; the keys take them over.
    """

    __slots__ = ("_closed", "_ntt", "_ternary", "parameters")

    def __init__(self, parameters: Parameters, ternary: NDArray[np.int8]) -> None:
        if ternary.ndim != 2 or ternary.shape[0] < 1 or ternary.shape[1] != parameters.degree:
            raise ConfigError(f"secrets must have shape (S, {parameters.degree}), S >= 1; got {ternary.shape}.")
        self.parameters = parameters
        self._ternary = ternary
        residues = parameters.ring.reduce(ternary.astype(np.int64))
        self._ntt = parameters.ring.forward(residues)
        residues.fill(0)
        self._closed = False

    @classmethod
    def generate(cls, parameters: Parameters, count: int, stream: Entropy) -> SecretKeys:
        """Draw ``count`` secrets."""
        if count < 1:
            raise ConfigError(f"a key holder must have at least one secret; got {count}.")
        return cls(parameters, draw_ternary(stream, count, parameters.degree))

    @property
    def count(self) -> int:
        """S, the number of secrets."""
        return len(self._ternary)

    @property
    def ternary(self) -> NDArray[np.int8]:
        """The coefficients (S, N)."""
        self._check_open()
        return self._ternary

    @property
    def ntt(self) -> Residues:
        """The secrets (S, L, N) in NTT form."""
        self._check_open()
        return self._ntt

    def close(self) -> None:
        """Overwrite the secrets; any later use is refused."""
        self._ternary.fill(0)
        self._ntt.fill(0)
        self._closed = True

    def _check_open(self) -> None:
        """Refuse to hand out overwritten secrets: they would encrypt to nothing but the message."""
        if self._closed:
            raise LocalProtocolError("secret keys must be open to be used; these were closed. Generate new ones.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SecretKeys(count={self.count}, closed={self._closed})"

    def __reduce__(self) -> str:
        raise TypeError("secret keys are not to be copied or stored")


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicKeys:
    """Encryptions of zero under each secret: body_s = mask * s + e.

    Attributes
    ----------
    parameters
        The ring.
    seed
        32 bytes from which the mask is grown.
    bodies
        (S, L, N) in NTT form.
    """

    parameters: Parameters
    seed: bytes
    bodies: Residues

    def __post_init__(self) -> None:
        p = self.parameters
        check_seed(self.seed)
        if self.bodies.ndim != 3 or self.bodies.shape[1:] != (len(p.primes), p.degree) or not self.bodies.shape[0]:
            raise ConfigError(
                f"public keys must have shape (S, {len(p.primes)}, {p.degree}), S >= 1; got {self.bodies.shape}."
            )

    @property
    def count(self) -> int:
        """S, the number of secrets."""
        return len(self.bodies)

    @cached_property
    def mask(self) -> Residues:
        """The common mask (L, N) in NTT form."""
        return expand_uniform(self.parameters, self.seed, "public key")

    @cached_property
    def coefficients(self) -> Residues:
        """The bodies (S, L, N) in coefficient form."""
        return self.parameters.ring.inverse(self.bodies)


def check_seed(seed: bytes) -> None:
    """Refuse a seed of another length: masks must come from 256 bits that nobody could choose among."""
    if len(seed) != KEY_BYTES:
        raise ConfigError(f"a seed of masks must have {KEY_BYTES} bytes; got {len(seed)}.")


def make_public_keys(keys: SecretKeys, *, seed: bytes, stream: Entropy) -> PublicKeys:
    """Encrypt zero under each secret, with the mask that the seed gives.

    Parameters
    ----------
    keys
        The secrets.
    seed
        32 public bytes; of a joint coin toss where several holders add up their keys.
    stream
        Where the errors come from.
    """
    check_seed(seed)
    parameters, ring = keys.parameters, keys.parameters.ring
    mask = expand_uniform(parameters, seed, "public key")
    errors = draw_errors(stream, keys.count, parameters.degree)
    bodies = ring.add(ring.multiply(keys.ntt, mask), ring.forward(ring.reduce(errors.astype(np.int64))))
    return PublicKeys(parameters=parameters, seed=seed, bodies=bodies)


def restrict_public_keys(public: PublicKeys, prime_count: int) -> PublicKeys:
    """Return the public keys modulo the first primes: the same mask's rows, errors unchanged."""
    parameters = parameters_at(public.parameters, prime_count)
    return PublicKeys(parameters=parameters, seed=public.seed, bodies=public.bodies[:, :prime_count].copy())


def restrict_secret_keys(keys: SecretKeys, prime_count: int) -> SecretKeys:
    """Return a copy of the secrets modulo the first primes; the caller closes it."""
    return SecretKeys(parameters_at(keys.parameters, prime_count), keys.ternary.copy())
