"""How a session's public key comes about: one party's own, or a sum of shares over coins that all tossed."""

from __future__ import annotations

from collections.abc import Mapping

from cloister.errors import RemoteProtocolError
from cloister.lattice.coin_toss import combine_tosses
from cloister.lattice.collective import combine_public_shares
from cloister.lattice.collective_relinearisation import RoundShare, add_round_shares, combine_relinearisation_key
from cloister.lattice.keys import PublicKeys
from cloister.lattice.ntt import Residues
from cloister.lattice.packing import pack_residues, unpack_residues
from cloister.lattice.relinearisation import RelinearisationKey, expand_key_masks
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.parcels import Prepared, decode_keys

SEED_BYTES = 32
_SQUARES = 2  # arrays in one share of a key for products


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
        If a holder has opened something else than it had committed to, or nothing.
    """
    holders = agreement.key_holders
    commitments = [prepared[holder].commitment or b"" for holder in holders]
    if set(openings) != set(holders):
        raise RemoteProtocolError("every key holder must reveal its coins; not all did.")
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
    parcels = {holder: decode_keys(raw) for holder, raw in find_posts(agreement, posts, "keys").items()}
    if set(parcels) != set(agreement.key_holders):
        raise RemoteProtocolError("every key holder must post its key; not all did.")
    bodies = [unpack_residues(parcels[holder].bodies, parameters, shape) for holder in agreement.key_holders]
    if agreement.is_collective:
        seed = read_coins(agreement, session, find_posts(agreement, posts, "reveal"), prepared)
        return combine_public_shares(parameters, seed, bodies)
    seed = parcels[agreement.key_holders[0]].seed or b""
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
    parcel = decode_keys(find_posts(agreement, posts, "keys")[agreement.key_holders[0]])
    count = len(parameters.primes)
    bodies = unpack_residues(parcel.relinearisation or b"", parameters, (count, count, parameters.degree))
    return RelinearisationKey(
        parameters=parameters, masks=expand_key_masks(parameters, parcel.seed or b""), bodies=bodies
    )
