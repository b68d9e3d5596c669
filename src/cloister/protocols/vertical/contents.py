"""What is inside the boxes: contents of posts and letters as bytes, and back, with every check.

A box comes from a party that holds its key, so anything wrong inside comes from that party; still nothing is trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct

from cloister.errors import RemoteProtocolError
from cloister.lattice.collective import (
    RoundShare,
    add_round_shares,
    combine_public_shares,
    combine_relinearisation_key,
    combine_tosses,
)
from cloister.lattice.keys import PublicKeys
from cloister.lattice.lwe import LweBatch, SmallLweBatch
from cloister.lattice.ntt import Residues
from cloister.lattice.packing import count_bytes, pack_residues, pack_words, unpack_residues, unpack_words
from cloister.lattice.parameters import Parameters
from cloister.lattice.relinearisation import RelinearisationKey, expand_key_masks
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.algorithm import VerticalFinding
from cloister.protocols.vertical.codebook import Codebook
from cloister.protocols.vertical.settings import ALICE, Settings
from cloister.protocols.vertical.stated import Stated
from cloister.records import IntArray
from cloister.report.sizes import Sizes
from cloister.wire import Array

SEED_BYTES = 32
COMMITMENT_BYTES = 32
_WEIGHT_MOST = 2.0**40  # of a cell or a cluster: there are fewer than 2^32 records
_WORD_BITS = 64
_SQUARES = 2  # arrays in one share of a key for products

Content = TypeVar("Content", bound=Struct)


class PostedCodebook(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A codebook; where records were read for it, that has been paid for."""

    reps: Array
    weights: Array
    variance: float
    residual_radius: Annotated[float, Meta(ge=0, lt=2**25)] | None  # a float, so that lengths reveal nothing
    bins: tuple[Annotated[int, Meta(ge=1, lt=2**16)], ...]


class Prepared(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a party sends first: its codebook if it has columns, its commitment if coins are tossed."""

    codebook: PostedCodebook | None
    commitment: bytes | None


class PostedKeys(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A public key, or a holder's share of one; the seed of its mask unless coins were tossed for it."""

    seed: bytes | None
    bodies: bytes
    relinearisation: bytes | None = None


class Asked(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What key holders are asked to decrypt: which query it answers, and the answer's masks and bodies."""

    query: Stated
    answer: bytes


class PostedResult(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What the session ends with: the last totals, and what the computing party found."""

    totals: bytes
    centres: Array
    centre_noise: Array | None
    sizes: Sizes


def encode(content: Struct) -> bytes:
    """Return a structured content as bytes."""
    return msgspec.msgpack.encode(content)


def decode(raw: bytes, kind: type[Content]) -> Content:
    """Read a structured content.

    Raises
    ------
    RemoteProtocolError
        If the bytes are anything else.
    """
    try:
        return msgspec.msgpack.decode(raw, type=kind)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError, MemoryError):
        raise RemoteProtocolError(f"the content of a box must be a {kind.__name__}; it is not.") from None


def decode_prepared(raw: bytes) -> Prepared:
    """Read what a party sends first."""
    return decode(raw, Prepared)


def check_prepared(prepared: Prepared, agreement: VerticalAgreement, author: int) -> None:
    """Refuse what a party sends first unless it has what its roles ask for: a codebook, a commitment to coins."""
    makes = author == agreement.computing or author in agreement.encrypted
    commits = agreement.is_collective and author in agreement.key_holders
    length = COMMITMENT_BYTES if commits else 0
    if (prepared.codebook is not None) != makes or len(prepared.commitment or b"") != length:
        raise RemoteProtocolError(
            f"party {author} must post {'a codebook' if makes else 'no codebook'} and a commitment of {length} bytes; "
            "it posted something else."
        )


def decode_keys(raw: bytes) -> PostedKeys:
    """Read a public key or a share of one."""
    return decode(raw, PostedKeys)


def decode_asked(raw: bytes) -> Asked:
    """Read what is to be decrypted."""
    return decode(raw, Asked)


def decode_result(raw: bytes) -> PostedResult:
    """Read the last totals and the result."""
    return decode(raw, PostedResult)


def pack_codebook(codebook: Codebook) -> PostedCodebook:
    """Write a codebook."""
    return PostedCodebook(
        Array.of(codebook.reps),
        Array.of(codebook.weights),
        codebook.variance,
        None if codebook.residual_radius is None else float(codebook.residual_radius),
        codebook.bins,
    )


def unpack_codebook(posted: PostedCodebook, settings: Settings, party: int) -> Codebook:
    """Read the codebook of a holder, from 0, or of ``ALICE``: only one that the settings allow."""
    shape = settings.shape_of(party)
    units, radius = settings.units, posted.residual_radius
    reps = np.ascontiguousarray(posted.reps.to_numpy(np.float64, shape.cells, shape.columns))
    weights = posted.weights.to_numpy(np.float64, shape.cells)
    on_grid = bool((np.abs(reps) <= 1.0).all()) and np.array_equal(reps * units, np.rint(reps * units))
    sized = bool((weights > 0).all() and (weights <= _WEIGHT_MOST).all())
    if not on_grid or not sized or not 0 <= posted.variance <= 4 * shape.columns or posted.bins != shape.bins:
        raise RemoteProtocolError(
            "a codebook must have the agreed cells, representatives on the agreed grid within the bounds, positive "
            "weights and a variance that the bounds allow; it does not."
        )
    most = settings.residual_most if party != ALICE else 0
    allowed = settings.is_exact and most > 0 if radius is None else radius <= most and radius.is_integer()
    if not allowed:
        raise RemoteProtocolError(f"residuals of a codebook must be at most {most} units long; they are not.")
    return Codebook(
        reps=reps,
        units=units,
        residual_radius=None if radius is None else int(radius),
        variance=posted.variance,
        weights=np.ascontiguousarray(weights),
        bins=posted.bins,
    )


def pack_result(totals: IntArray, finding: VerticalFinding) -> PostedResult:
    """Write the last totals and the result."""
    return PostedResult(
        pack_totals(totals),
        Array.of(finding.centres),
        None if finding.centre_noise is None else Array.of(finding.centre_noise),
        finding.sizes,
    )


def unpack_result(posted: PostedResult, settings: Settings) -> VerticalFinding:
    """Read the result: only one that the settings allow."""
    k = settings.clusters
    centres = np.ascontiguousarray(posted.centres.to_numpy(np.float64, k, settings.dimensions))
    noise = None
    if posted.centre_noise is not None:
        noise = np.ascontiguousarray(posted.centre_noise.to_numpy(np.float64, k, settings.dimensions))
    inside = (np.abs(centres) <= 1).all() and len(np.unique(centres, axis=0)) == k
    sized = len(posted.sizes.clusters) == k and posted.sizes.unit == "records"
    blurred = settings.is_exact if noise is None else not settings.is_exact and ((noise >= 0) & (noise <= 1)).all()
    if not inside or not sized or not blurred:
        raise RemoteProtocolError(
            "a result must have different centres within the bounds, the size of each, and their noise, from 0 to 1, "
            "exactly where there is any; it does not."
        )
    return VerticalFinding(
        centres=centres,
        centre_noise=noise,
        sizes=posted.sizes,
        rounds=settings.rounds_made,
    )


def pack_answer(batch: LweBatch | SmallLweBatch) -> bytes:
    """Write an answer: its masks, its bodies."""
    if isinstance(batch, SmallLweBatch):
        return pack_words(batch.masks, batch.bits) + pack_words(batch.bodies, batch.bits)
    primes = batch.parameters.primes
    return pack_residues(batch.masks, primes) + pack_residues(batch.bodies, primes)


def unpack_answer(raw: bytes, *, parameters: Parameters, length: int, bits: int | None) -> LweBatch | SmallLweBatch:
    """Read an answer of so many numbers, modulo 2^bits or, where that is None, modulo q."""
    places = np.arange(length)
    secrets = np.zeros(length, dtype=np.int64)
    if bits is None:
        shape = (length, len(parameters.primes), parameters.degree)
        cut = count_bytes(length * parameters.degree * len(parameters.primes), 27)
        masks = unpack_residues(raw[:cut], parameters, shape)
        bodies = unpack_residues(raw[cut:], parameters, shape[:2])
        return LweBatch(parameters=parameters, masks=masks, bodies=bodies, mask_of=places, secret_of=secrets)
    cut = count_bytes(length * parameters.degree, bits)
    return SmallLweBatch(
        parameters=parameters,
        bits=bits,
        masks=unpack_words(raw[:cut], bits, (length, parameters.degree)),
        bodies=unpack_words(raw[cut:], bits, (length,)),
        mask_of=places,
        secret_of=secrets,
    )


def pack_share(share: Residues, parameters: Parameters, members: Sequence[int]) -> bytes:
    """Write a share of a decryption: who else it is for, two bytes each, and one number modulo q for each body."""
    return _list_members(members) + pack_residues(share, parameters.primes)


def unpack_share(raw: bytes, parameters: Parameters, *, length: int, members: Sequence[int]) -> Residues:
    """Read a share of so many numbers; it must be for exactly these members.

    Shares fit together only if all were made for the same ones, and the relay says for whom.
    """
    expected = _list_members(members)
    if raw[: len(expected)] != expected:
        raise RemoteProtocolError("a share of a decryption must be made for those who sent theirs; one is not.")
    return unpack_residues(raw[len(expected) :], parameters, (length, len(parameters.primes)))


def _list_members(members: Sequence[int]) -> bytes:
    return b"".join(member.to_bytes(2, "little") for member in sorted(members))


def pack_totals(totals: IntArray) -> bytes:
    """Write integers."""
    return pack_words(totals.astype(np.int64).view(np.uint64), _WORD_BITS)


def unpack_totals(raw: bytes, *, length: int, modulus: int) -> IntArray:
    """Read so many integers, centred modulo the plaintext modulus."""
    totals = unpack_words(raw, _WORD_BITS, (length,)).view(np.int64)
    if (totals > modulus // 2).any() or (totals < -(modulus // 2)).any():
        raise RemoteProtocolError("totals must lie within the plaintext modulus; some do not.")
    return totals


# --- keys -------------------------------------------------------------------------------------------------------------


def find_posts(agreement: VerticalAgreement, posts: Mapping[tuple[int, int], bytes], kind: str) -> dict[int, bytes]:
    """Return what was posted in stages of one kind, by author."""
    schedule = agreement.schedule
    return {
        author: raw
        for (stage, author), raw in sorted(posts.items())
        if stage < len(schedule) and schedule[stage].kind == kind
    }


def read_coins(
    agreement: VerticalAgreement, session: bytes, openings: Mapping[int, bytes], prepared: Mapping[int, Prepared]
) -> bytes:
    """Return the seed that the key holders tossed coins for.

    Raises
    ------
    RemoteProtocolError
        If a holder has opened something other than its commitment, or nothing.
    """
    holders = agreement.key_holders
    if set(openings) != set(holders):
        raise RemoteProtocolError("every key holder must reveal its coins; not all did.")
    commitments = [prepared[holder].commitment or b"" for holder in holders]
    return combine_tosses(session, commitments, [openings[holder] for holder in holders])


def read_public_keys(
    agreement: VerticalAgreement,
    session: bytes,
    posts: Mapping[tuple[int, int], bytes],
    prepared: Mapping[int, Prepared],
) -> PublicKeys:
    """Return the public key from what was posted.

    Raises
    ------
    RemoteProtocolError
        If a key or share is missing or malformed.
    """
    parameters = agreement.key_parameters
    shape = (1, len(parameters.primes), parameters.degree)
    posted = {holder: decode_keys(raw) for holder, raw in find_posts(agreement, posts, "keys").items()}
    if set(posted) != set(agreement.key_holders):
        raise RemoteProtocolError("every key holder must post its key; not all did.")
    bodies = [unpack_residues(posted[holder].bodies, parameters, shape) for holder in agreement.key_holders]
    if agreement.is_collective:
        seed = read_coins(agreement, session, find_posts(agreement, posts, "reveal"), prepared)
        return combine_public_shares(parameters, seed, bodies)
    seed = posted[agreement.key_holders[0]].seed or b""
    if len(seed) != SEED_BYTES:
        raise RemoteProtocolError(f"the seed of a public key must have {SEED_BYTES} bytes; got {len(seed)}.")
    return PublicKeys(parameters=parameters, seed=seed, bodies=bodies[0])


def pack_round_share(agreement: VerticalAgreement, share: RoundShare) -> bytes:
    """Write a holder's share of a round in which the key for products is made."""
    primes = agreement.key_parameters.primes
    return pack_residues(share.first, primes) + pack_residues(share.second, primes)


def add_rounds(agreement: VerticalAgreement, posts: Mapping[tuple[int, int], bytes], kind: str) -> RoundShare:
    """Add up what all key holders posted in a round in which the key for products is made.

    Raises
    ------
    RemoteProtocolError
        If a share is missing or malformed.
    """
    shares = find_posts(agreement, posts, kind)
    if set(shares) != set(agreement.key_holders):
        raise RemoteProtocolError("every key holder must post its share of the key for products; not all did.")
    parameters = agreement.key_parameters
    read = [_read_squares(agreement, shares[holder]) for holder in agreement.key_holders]
    return add_round_shares(parameters, [RoundShare(first=first, second=second) for first, second in read])


def _read_squares(agreement: VerticalAgreement, raw: bytes) -> tuple[Residues, Residues]:
    parameters = agreement.key_parameters
    count = len(parameters.primes)
    both = unpack_residues(raw, parameters, (_SQUARES, count, count, parameters.degree))
    return both[0].copy(), both[1].copy()


def read_product_key(agreement: VerticalAgreement, posts: Mapping[tuple[int, int], bytes]) -> RelinearisationKey | None:
    """Return the key for products from what was posted; None where there are none."""
    if agreement.plan is None:
        return None
    parameters = agreement.key_parameters
    if agreement.is_collective:
        first, second = add_rounds(agreement, posts, "relinearise"), add_rounds(agreement, posts, "combine")
        return combine_relinearisation_key(parameters, first, second)
    posted = decode_keys(find_posts(agreement, posts, "keys")[agreement.key_holders[0]])
    count = len(parameters.primes)
    bodies = unpack_residues(posted.relinearisation or b"", parameters, (count, count, parameters.degree))
    return RelinearisationKey(
        parameters=parameters, masks=expand_key_masks(parameters, posted.seed or b""), bodies=bodies
    )
