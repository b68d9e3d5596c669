"""A party other than the computing one: encrypts its columns, if it has any; decrypts, if it holds a key."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cloister.crypto import Stream
from cloister.errors import RemoteProtocolError
from cloister.lattice.collective import RelinearisationHolder, Toss, draw_toss, make_public_share
from cloister.lattice.decryption import DecryptionGuard, share_decryption
from cloister.lattice.keys import PublicKeys, SecretKeys, make_public_keys
from cloister.lattice.lwe import LweBatch, SmallLweBatch, decrypt_lwe
from cloister.lattice.ntt import Residues
from cloister.lattice.packing import pack_residues, unpack_residues
from cloister.lattice.relinearisation import make_relinearisation_key
from cloister.lattice.threshold import ThresholdKeys, share_threshold_decryption, split_keys
from cloister.privacy.release import NoiseDuty
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.contents import (
    SEED_BYTES,
    PostedKeys,
    add_rounds,
    encode,
    find_posts,
    pack_round_share,
    pack_share,
    pack_totals,
    read_coins,
    read_public_keys,
    unpack_answer,
)
from cloister.protocols.vertical.noise import draw_share
from cloister.protocols.vertical.party import VerticalParty, raise_diverged
from cloister.protocols.vertical.relayed import Opened, Said
from cloister.protocols.vertical.uploads import Sender
from cloister.records import FloatArray
from cloister.roles import Seat


def publish_keys(keys: SecretKeys, stream: Stream, *, products: bool) -> PostedKeys:
    """Return the public key of a single key holder, and where ciphertexts are multiplied the key for products."""
    primes = keys.parameters.primes
    public = make_public_keys(keys, seed=stream.bytes(SEED_BYTES), stream=stream)
    product_key = None
    if products:
        product_key = pack_residues(make_relinearisation_key(keys, seed=public.seed, stream=stream).bodies, primes)
    return PostedKeys(public.seed, pack_residues(public.bodies, primes), product_key)


class HolderParty(VerticalParty):
    """A holder of encrypted columns, of a key, or of both; parameters as :class:`~.party.VerticalParty`.

    Privacy
    -------
    As a key holder it adds its share of the noise to what it decrypts before that leaves it, and its books are charged
    first: against the computing party, which knows its own share (docs/proofs/vertical.md).
    """

    def __init__(
        self, seat: Seat, agreement: VerticalAgreement, columns: FloatArray, *, duty: NoiseDuty | None = None
    ) -> None:
        super().__init__(seat, agreement, columns, duty=duty)
        self._keys: SecretKeys | None = None
        self._toss: Toss | None = None
        self._points: ThresholdKeys | None = None
        self._own_split: Residues | None = None
        self._public: PublicKeys | None = None
        self._sender: Sender | None = None
        self._products: RelinearisationHolder | None = None
        self._guard = DecryptionGuard(max(1, self._agreement.answers))
        self._received: dict[int, bytes] = {}  # key shares, by sender
        self._asked: bytes | None = None  # the answer that we are to decrypt next

    def close(self) -> None:
        """Overwrite the keys with zeros."""
        for keys in (self._keys, self._points):
            if keys is not None:
                keys.close()
        if self._own_split is not None:
            self._own_split.fill(0)

    @property
    def _place(self) -> int:
        """Our place among the key holders."""
        return self._agreement.key_holders.index(self.number)

    def _commit(self) -> bytes | None:
        agreement = self._agreement
        if not agreement.is_collective or self.number not in agreement.key_holders:
            return None
        self._toss = draw_toss(self._session, self._place, self._entropy)
        return self._toss.commitment

    def _do(self, opened: Opened) -> Said:
        self._take_letters(opened)
        actions: dict[str, Callable[[Opened], Said]] = {
            "reveal": self._reveal,
            "keys": self._make_keys,
            "relinearise": self._share_product_key,
            "combine": self._combine_product_key,
            "upload": self._upload,
            "attend": lambda _: Said(),
            "decrypt": self._decrypt,
            "close": self._finish,
        }
        action = actions.get(opened.stage.kind)
        if action is None:
            raise RemoteProtocolError(f"a holder has no part in the stage {opened.stage.kind!r}; it was given one.")
        return action(opened)

    def _reveal(self, _: Opened) -> Said:
        assert self._toss is not None
        return Said(post=self._toss.opening)

    def _finish(self, _: Opened) -> Said:
        self._finished = True
        self.close()
        return Said()

    def _make_keys(self, _: Opened) -> Said:
        """Draw our secret; post the public key, or our share of it; share our share if a threshold was agreed on."""
        agreement, parameters = self._agreement, self._agreement.key_parameters
        keys = SecretKeys.generate(parameters, 1, self._private)
        letters: dict[int, bytes] = {}
        if agreement.is_collective:
            seed = read_coins(agreement, self._session, find_posts(agreement, self._posts, "reveal"), self._prepared)
            posted = PostedKeys(
                None, pack_residues(make_public_share(keys, seed=seed, stream=self._private), parameters.primes)
            )
            if agreement.threshold is not None:
                split = split_keys(
                    keys, threshold=agreement.threshold, holders=len(agreement.key_holders), stream=self._private
                )
                letters = {
                    holder: pack_residues(split[place], parameters.primes)
                    for place, holder in enumerate(agreement.key_holders)
                    if holder != self.number
                }
                self._own_split = split[self._place].copy()
                split.fill(0)
        else:
            posted = publish_keys(keys, self._private, products=agreement.is_joint)
        self._keys = keys
        return Said(post=encode(posted), letters=letters)

    def _share_product_key(self, _: Opened) -> Said:
        """First round of the key for products, over the coins that were tossed."""
        assert self._keys is not None
        openings = find_posts(self._agreement, self._posts, "reveal")
        seed = read_coins(self._agreement, self._session, openings, self._prepared)
        self._products = RelinearisationHolder(self._keys, seed=seed, stream=self._private)
        return Said(post=pack_round_share(self._agreement, self._products.share_first()))

    def _combine_product_key(self, _: Opened) -> Said:
        """Second round, from the sum of the first."""
        assert self._products is not None
        total = add_rounds(self._agreement, self._posts, "relinearise")
        return Said(post=pack_round_share(self._agreement, self._products.share_second(total)))

    def _upload(self, opened: Opened) -> Said:
        if self._sender is None:
            assert self._own_codebook is not None
            self._public = read_public_keys(self._agreement, self._session, self._posts, self._prepared)
            self._sender = Sender(
                self._agreement,
                place=self._agreement.encrypted.index(self.number),
                codebook=self._own_codebook,
                columns=self._columns,
                keys=self._keys,
                public=self._public,
                stream=self._private,
            )
        return Said(letters={self._agreement.computing: self._sender.encrypt_upload(opened.stage.index)})

    def _take_letters(self, opened: Opened) -> None:
        """Keep the last answer, and what other key holders sent us of their secrets.

        With all of these, we have our point of the common secret. What we already have is skipped.
        """
        agreement = self._agreement
        for (stage, sender), raw in sorted(opened.letters.items()):
            kind = agreement.schedule[stage].kind
            if kind == "compute" and sender == agreement.computing:
                self._asked = raw
            elif kind == "keys" and sender in agreement.key_holders and self._points is None:
                self._received[sender] = raw
        if self._received and len(self._received) == len(agreement.key_holders) - 1:
            assert agreement.threshold is not None
            parameters = agreement.key_parameters
            shape = (1, len(parameters.primes), parameters.degree)
            assert self._own_split is not None
            shares = [
                self._own_split if holder == self.number else unpack_residues(self._received[holder], parameters, shape)
                for holder in agreement.key_holders
            ]
            self._points = ThresholdKeys(parameters, shares, number=self._place, threshold=agreement.threshold)
            self._received.clear()
            self._own_split.fill(0)
            self._own_split = None

    def _decrypt(self, opened: Opened) -> Said:
        """Decrypt an answer, or give our share of it, with our share of the noise."""
        agreement, follower = self._agreement, self._require_follower()
        if self._asked is None:
            raise RemoteProtocolError("an answer must come before it is decrypted, and is decrypted once; none did.")
        query, parameters = follower.query, agreement.parameters
        bits = None if agreement.is_collective else agreement.switch_bits
        batch = unpack_answer(self._asked, follower.digest, parameters=parameters, length=query.length, bits=bits)
        if batch is None:
            raise_diverged()
        self._asked = None
        noise = np.zeros(query.length, dtype=np.int64)
        if isinstance(batch, SmallLweBatch):
            self._guard.admit(batch.masks.view(np.uint32))  # refuses before anything is paid
        if self._duty is not None:
            for part in query.parts:
                self._duty.charger.charge(part.release(agreement.settings))
            noise = draw_share(agreement.settings, query, self._duty.sampler)
        if isinstance(batch, LweBatch):
            share = self._share(batch, opened, noise.tolist())
            return Said(letters={agreement.computing: pack_share(share, parameters, opened.members)})
        assert isinstance(batch, SmallLweBatch)
        assert self._keys is not None
        exact = np.array(decrypt_lwe(self._keys, batch), dtype=np.int64)
        t = parameters.plaintext_modulus
        totals = (exact + noise + t // 2) % t - t // 2
        return Said(letters={agreement.computing: pack_totals(totals)})

    def _share(self, batch: LweBatch, opened: Opened, noise: list[int]) -> Residues:
        agreement = self._agreement
        if agreement.threshold is None:
            assert self._keys is not None
            return share_decryption(
                self._keys,
                batch,
                smudge_bits=agreement.smudge_bits,
                stream=self._private,
                guard=self._guard,
                noise=noise,
            )
        if self._points is None:
            raise RemoteProtocolError("every key holder's share must have come before decryption; not all did.")
        members = [agreement.key_holders.index(member) for member in opened.members]
        return share_threshold_decryption(
            self._points,
            batch,
            members=members,
            smudge_bits=agreement.smudge_bits,
            stream=self._private,
            guard=self._guard,
            noise=noise,
        )
