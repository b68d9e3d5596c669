"""A ciphertext is decrypted once: a key holder remembers the masks it has answered for, and refuses them again.

Why. A decryption share is a linear function of the secret plus a fresh smudge and a fresh part of the privacy noise.
Asked again about the same mask, the holder would draw both anew: another release that nobody charged, and an average
in which the noise fades. The mask alone decides; bodies are not the holder's to judge. The guard holds against
repetition. It cannot see that a mask is a multiple or a sum of earlier ones; that is what the smudge of every single
answer is for (docs/proofs/collective-keys.md).
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from cloister.errors import ConfigError, RemoteProtocolError

DIGEST_BYTES = 16


class DecryptionGuard:
    """Admits each mask once.

    Parameters
    ----------
    masks_max
        How many masks a session may ask for; at 16 bytes each this bounds the memory. When they are spent, further
        requests are refused: forgetting old ones would open the door to repeating them.
    """

    def __init__(self, masks_max: int = 1 << 20) -> None:
        if masks_max < 1:
            raise ConfigError(f"a guard must admit at least one mask; got masks_max={masks_max}. Raise it.")
        self.masks_max = masks_max
        self._digests: set[bytes] = set()

    @property
    def masks_spent(self) -> int:
        """How many masks were admitted."""
        return len(self._digests)

    def admit(self, masks: NDArray[np.uint32]) -> None:
        """Remember these masks, or refuse all of them and remember none.

        Parameters
        ----------
        masks
            Shape (A, L, N): one polynomial after the other.

        Raises
        ------
        RemoteProtocolError
            If one of them was answered before or appears twice, or the session's number of masks is spent.
        """
        fresh = {digest_mask(mask) for mask in masks}
        repeated = len(masks) - len(fresh - self._digests)
        if repeated:
            raise RemoteProtocolError(
                f"a ciphertext is decrypted once; {repeated} of {len(masks)} requested masks were answered before "
                f"or stand twice in the request. Re-randomise each answer and ask once."
            )
        if len(self._digests) + len(fresh) > self.masks_max:
            raise RemoteProtocolError(
                f"a session decrypts at most {self.masks_max} masks; {len(self._digests)} are spent and "
                f"{len(fresh)} more were asked for. Start a new session."
            )
        self._digests |= fresh


def digest_mask(mask: NDArray[np.uint32]) -> bytes:
    """Return 16 bytes of BLAKE2b; two masks with one digest would only make the second be refused."""
    words = np.ascontiguousarray(mask, dtype="<u4")
    return blake2b(words.data, digest_size=DIGEST_BYTES, person=b"cloister mask").digest()
