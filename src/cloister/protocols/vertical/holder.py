"""A party other than the computing one: encrypts its columns, if it has any; decrypts, if it holds a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
    decode_asked,
    decode_result,
    encode,
    find_posts,
    pack_round_share,
    pack_share,
    pack_totals,
    read_coins,
    read_public_keys,
    unpack_answer,
    unpack_result,
    unpack_totals,
)
from cloister.protocols.vertical.noise import pay_share
from cloister.protocols.vertical.party import VerticalParty
from cloister.protocols.vertical.query import Part
from cloister.protocols.vertical.relayed import Opened, Said
from cloister.protocols.vertical.stated import derive_parts
from cloister.protocols.vertical.uploads import Sender
from cloister.records import FloatArray, IntArray
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
        self._guard = DecryptionGuard(self._agreement.answers)
        self._asked: tuple[int, bytes] | None = None  # what we are to decrypt next, and in which pass

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
        if self._own_split is not None:
            self._points = self._read_points(opened, self._own_split)
        actions: dict[str, Callable[[Opened], Said]] = {
            "reveal": self._reveal,
            "keys": self._make_keys,
            "relinearise": self._share_product_key,
            "combine": self._combine_product_key,
            "upload": self._upload,
            "attend": self._attend,
            "decrypt": self._decrypt,
            "close": self._finish,
        }
        action = actions.get(opened.stage.kind)
        if action is None:
            raise RemoteProtocolError(f"a holder has no part in the stage {opened.stage.kind!r}; it was given one.")
        said = action(opened)
        if self._points is not None and self._own_split is not None:
            self._own_split.fill(0)
            self._own_split = None
        return said

    def _reveal(self, _: Opened) -> Said:
        assert self._toss is not None
        return Said(post=self._toss.opening)

    def _read_progress(self, posts: Mapping[int, bytes]) -> None:
        settings, schedule = self._agreement.settings, self._agreement.schedule
        modulus, lengths = self._agreement.parameters.plaintext_modulus, settings.lengths
        for number, raw in sorted(posts.items()):
            stage = schedule[number]
            if stage.kind == "finish":
                posted = decode_result(raw)
                self._found = unpack_result(posted, settings)
                totals = unpack_totals(posted.totals, length=lengths[-1], modulus=modulus)
            else:
                totals = unpack_totals(raw, length=lengths[stage.index - 1], modulus=modulus)
            self._totals = (*self._totals, totals)

    def _finish(self, _: Opened) -> Said:
        if self._found is None:
            raise RemoteProtocolError("the computing party must have posted the result at the end; it has not.")
        self._finished = True
        self.close()
        return Said()

    def _make_keys(self, _: Opened) -> Said:
        """Draw our secret; post the public key, or our share of it; share our share if a threshold was agreed on."""
        agreement, parameters = self._agreement, self._agreement.key_parameters
        letters: dict[int, bytes] = {}
        coins = self._read_coins() if agreement.is_collective else None
        keys = SecretKeys.generate(parameters, 1, self._private)
        if coins is not None:
            posted = PostedKeys(
                None, pack_residues(make_public_share(keys, seed=coins, stream=self._private), parameters.primes)
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

    def _read_coins(self) -> bytes:
        """Return the seed that the key holders tossed coins for."""
        openings = find_posts(self._agreement, self._posts, "reveal")
        return read_coins(self._agreement, self._session, openings, self._prepared)

    def _share_product_key(self, _: Opened) -> Said:
        """First round of the key for products, over the coins that were tossed."""
        assert self._keys is not None
        self._products = RelinearisationHolder(self._keys, seed=self._read_coins(), stream=self._private)
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

    def _read_points(self, opened: Opened, own: Residues) -> ThresholdKeys:
        """Return our point of the common secret, from what all key holders sent us of theirs.

        It comes with our first turn after keys were made; whatever is repeated later is passed over.
        """
        agreement, parameters = self._agreement, self._agreement.key_parameters
        sent = {
            sender: raw for (stage, sender), raw in opened.letters.items() if agreement.schedule[stage].kind == "keys"
        }
        if len(sent) != len(agreement.key_holders) - 1:
            raise RemoteProtocolError("every key holder's share must come with our turn after keys; not all did.")
        shape = (1, len(parameters.primes), parameters.degree)
        shares = [
            own if holder == self.number else unpack_residues(sent[holder], parameters, shape)
            for holder in agreement.key_holders
        ]
        return ThresholdKeys(parameters, shares, number=self._place, threshold=self._agreement.decryptors)

    def _attend(self, opened: Opened) -> Said:
        """Say that we are there, and keep what we shall be asked to decrypt."""
        self._asked = self._find_asked(opened)
        return Said()

    def _find_asked(self, opened: Opened) -> tuple[int, bytes] | None:
        """Return what the computing party asked last, and in which pass: just now, or in a turn before."""
        letters = {
            self._agreement.schedule[stage].index: raw
            for (stage, sender), raw in opened.letters.items()
            if sender == self._agreement.computing and self._agreement.schedule[stage].kind == "compute"
        }
        return max(letters.items()) if letters else self._asked

    def _decrypt(self, opened: Opened) -> Said:
        """Decrypt an answer, or give our share of it, with our share of the noise.

        Everything is checked before anything is charged or drawn: a request that is refused costs nothing, and the
        true one is answered afterwards.
        """
        agreement = self._agreement
        parts, batch = self._read_asked(opened)

        def pay() -> IntArray:
            return pay_share(agreement.settings, parts, self._duty)

        if isinstance(batch, LweBatch):
            share = self._share(batch, opened, lambda: pay().tolist())
            said = pack_share(share, agreement.parameters, opened.members)
        else:
            said = pack_totals(self._open(batch, pay))
        self._asked = None
        return Said(letters={agreement.computing: said})

    def _read_asked(self, opened: Opened) -> tuple[tuple[Part, ...], LweBatch | SmallLweBatch]:
        """Return what is to be paid for, and what is to be decrypted, of the answer that belongs to this stage."""
        agreement, index = self._agreement, opened.stage.index
        found = self._find_asked(opened)
        if found is None or found[0] != index:
            raise RemoteProtocolError("an answer must come before it is decrypted, and is decrypted once; none did.")
        asked = decode_asked(found[1])
        parts = derive_parts(asked.query, agreement.settings, self.codebooks, agreement.queries[index])
        batch = unpack_answer(
            asked.answer,
            parameters=agreement.parameters,
            length=agreement.settings.lengths[index],
            bits=None if agreement.is_collective else agreement.switch_bits,
        )
        return parts, batch

    def _open(self, batch: SmallLweBatch, pay: Callable[[], IntArray]) -> IntArray:
        """Return the plaintexts with our share of the noise, centred."""
        assert self._keys is not None
        self._guard.admit(batch.masks.view(np.uint32))
        noise, t = pay(), self._agreement.parameters.plaintext_modulus
        exact = np.array(decrypt_lwe(self._keys, batch), dtype=np.int64)
        total: IntArray = (exact + noise + t // 2) % t - t // 2
        return total

    def _share(self, batch: LweBatch, opened: Opened, noise: Callable[[], list[int]]) -> Residues:
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
        assert self._points is not None
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
