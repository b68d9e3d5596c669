"""The group: RFC 9380's vectors, X25519 as a commuting and invertible action, and what is no point."""

import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.crypto import SeededEntropy
from cloister.errors import RemoteProtocolError
from cloister.protocols.align.group import (
    ORDER,
    PRIME,
    SMALL_ORDER,
    BlindingKey,
    are_squares,
    check_points,
    decode_exponent,
    encode_exponent,
    hash_to_field,
    hash_to_points,
    map_to_curve,
)

# RFC 9380 J.4.2, curve25519_XMD:SHA-512_ELL2_NU_: message, u, x of Q = map_to_curve(u), x of P = 8 Q.
DOMAIN = b"QUUX-V01-CS02-with-curve25519_XMD:SHA-512_ELL2_NU_"
VECTORS = [
    (
        b"",
        "608d892b641f0328523802a6603427c26e55e6f27e71a91a478148d45b5093cd",
        "51125222da5e763d97f3c10fcc92ea6860b9ccbbd2eb1285728f566721c1e65b",
        "1bb913f0c9daefa0b3375378ffa534bda5526c97391952a7789eb976edfe4d08",
    ),
    (
        b"abc",
        "46f5b22494bfeaa7f232cc8d054be68561af50230234d7d1d63d1d9abeca8da5",
        "7d56d1e08cb0ccb92baf069c18c49bb5a0dcd927eff8dcf75ca921ef7f3e6eeb",
        "7c22950b7d900fa866334262fcaea47a441a578df43b894b4625c9b450f9a026",
    ),
    (
        b"abcdef0123456789",
        "235fe40c443766ce7e18111c33862d66c3b33267efa50d50f9e8e5d252a40aaa",
        "3fbe66b9c9883d79e8407150e7c2a1c8680bee496c62fabe4619a72b3cabe90f",
        "31ad08a8b0deeb2a4d8b0206ca25f567ab4e042746f792f4b7973f3ae2096c52",
    ),
    (
        b"q128_" + b"q" * 128,
        "001e92a544463bda9bd04ddbe3d6eed248f82de32f522669efc5ddce95f46f5b",
        "227e0bb89de700385d19ec40e857db6e6a3e634b1c32962f370d26f84ff19683",
        "027877759d155b1997d0d84683a313eb78bdb493271d935b622900459d52ceaa",
    ),
    (
        b"a512_" + b"a" * 512,
        "1a68a1af9f663592291af987203393f707305c7bac9c8d63d6a729bdc553dc19",
        "3bcd651ee54d5f7b6013898aab251ee8ecc0688166fce6e9548d38472f6bd196",
        "5fd892c0958d1a75f54c3182a18d286efab784e774d1e017ba2fb252998b5dc1",
    ),
]


def euler(number):
    return pow(number, (PRIME - 1) // 2, PRIME) == 1


def is_on_curve(x):
    return euler((x**3 + 486662 * x * x + x) % PRIME)


def double(x):
    """x-coordinate of 2 P (RFC 7748): the reference for clearing the cofactor."""
    return (x * x - 1) ** 2 * pow(4 * x * (x * x + 486662 * x + 1), -1, PRIME) % PRIME


def key(seed):
    return BlindingKey.draw(SeededEntropy(seed, "key"))


def test_the_hash_is_that_of_rfc_9380():
    messages = [message for message, *_ in VECTORS]
    elements = hash_to_field(messages, DOMAIN)
    assert [f"{u:064x}" for u in elements] == [u for _, u, _, _ in VECTORS]
    points = map_to_curve(elements)
    assert [f"{x:064x}" for x in points] == [q for _, _, q, _ in VECTORS]
    assert [f"{double(double(double(x))):064x}" for x in points] == [p for *_, p in VECTORS]
    assert hash_to_points(messages, DOMAIN) == b"".join(x.to_bytes(32, "little") for x in points)


def test_a_key_of_exponent_one_takes_away_the_component_of_small_order():
    """It multiplies by 8 (1/8 mod l), which is 1 modulo l and 0 modulo 8; so 8 times the result is RFC 9380's P."""
    points = hash_to_points([message for message, *_ in VECTORS], DOMAIN)
    cleared = BlindingKey.from_exponent(1).blind(points)
    numbers = [int.from_bytes(cleared[at : at + 32], "little") for at in range(0, 160, 32)]
    assert [f"{double(double(double(x))):064x}" for x in numbers] == [p for *_, p in VECTORS]
    assert BlindingKey.from_exponent(1).blind(cleared) == cleared


@given(st.lists(st.integers(1, PRIME - 1), min_size=1, max_size=20))
def test_squares_are_found_as_by_eulers_criterion(numbers):
    edges = [1, 2, 3, 4, PRIME - 1, PRIME - 2, PRIME // 2, 2**64, 2**128, 2**192, 2**254]
    assert are_squares(numbers + edges).tolist() == [euler(number) for number in numbers + edges]


def test_every_id_lands_on_the_curve_and_taking_the_hash_itself_would_not():
    messages = [b"%d" % number for number in range(200)]
    points = hash_to_points(messages)
    assert all(is_on_curve(int.from_bytes(points[at : at + 32], "little")) for at in range(0, len(points), 32))
    naive = [int.from_bytes(hashlib.sha256(message).digest(), "little") % PRIME for message in messages]
    blinded = [key(1).blind(x.to_bytes(32, "little")) for x in naive]
    on_curve = [is_on_curve(x) for x in naive]
    assert 50 < sum(on_curve) < 150
    # The bit survives blinding: whoever sees the blinded point can read it. This is why RFC 9380 is used.
    assert [is_on_curve(int.from_bytes(point, "little")) for point in blinded] == on_curve


def test_different_ids_have_different_points_and_batches_change_nothing():
    messages = [b"%d" % number for number in range(500)]
    points = hash_to_points(messages)
    assert len({points[at : at + 32] for at in range(0, len(points), 32)}) == 500
    assert points == b"".join(hash_to_points(messages[at : at + 7]) for at in range(0, 500, 7))
    assert hash_to_points([]) == b""


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(0, 2**32), st.binary(max_size=40))
def test_blinding_commutes_and_can_be_undone(one, other, message):
    a, b, point = key(one), key(other), hash_to_points([message])
    assert a.blind(b.blind(point)) == b.blind(a.blind(point))
    undo = BlindingKey.from_exponent(pow(a.exponent, -1, ORDER))
    assert undo.blind(a.blind(b.blind(point))) == b.blind(point)
    product = BlindingKey.from_exponent(a.exponent * b.exponent % ORDER)
    assert product.blind(point) == a.blind(b.blind(point))
    assert BlindingKey.from_exponent(ORDER - a.exponent).blind(point) == a.blind(point)  # x-coordinates: P is -P


def test_keys_use_all_251_bits():
    exponents = [key(seed).exponent * pow(8, -1, ORDER) % ORDER for seed in range(300)]
    assert all(2**251 <= j < 2**252 for j in exponents)
    ones = [sum(j >> bit & 1 for j in exponents) for bit in range(251)]
    assert 80 < min(ones) <= max(ones) < 220  # 8 standard deviations


@pytest.mark.parametrize("point", SMALL_ORDER)
def test_points_of_small_order_are_refused_by_us_and_known_to_the_library(point):
    with pytest.raises(RemoteProtocolError, match="large order"):
        check_points(hash_to_points([b"good"]) + point)
    with pytest.raises(ValueError, match="shared"):
        X25519PrivateKey.from_private_bytes(bytes(32)).exchange(X25519PublicKey.from_public_bytes(point))


@pytest.mark.parametrize("number", [PRIME, PRIME + 5, 2**255 - 1, 2**255 + 9, 2**256 - 1])
def test_second_names_of_points_are_refused(number):
    with pytest.raises(RemoteProtocolError, match="below"):
        check_points(hash_to_points([b"good"]) + number.to_bytes(32, "little"))


@given(st.binary(max_size=100))
def test_bytes_are_points_or_refused(raw):
    try:
        check_points(raw)
    except RemoteProtocolError:
        return
    assert len(key(3).blind(raw)) == len(raw)


@pytest.mark.parametrize(
    "raw",
    [bytes(32), bytes(31), bytes(33), (ORDER - 1).to_bytes(32, "little"), ORDER.to_bytes(32, "little"), b"\xff" * 32],
)
def test_exponents_outside_the_group_are_refused(raw):
    with pytest.raises(RemoteProtocolError):
        decode_exponent(raw)


@given(st.integers(1, ORDER - 1))
def test_an_exponent_and_its_negative_travel_alike(exponent):
    """Whichever it is would tell the coordinator one bit of a key for each list: j is in the upper half."""
    assert encode_exponent(exponent) == encode_exponent(ORDER - exponent)
    assert decode_exponent(encode_exponent(exponent)) in (exponent, ORDER - exponent)


def test_an_exponent_without_a_key_is_refused():
    """8 j with 2^252 <= j < l: less than one in 2^125."""
    with pytest.raises(RemoteProtocolError, match="no X25519 key"):
        BlindingKey.from_exponent(8 * (ORDER - 5) % ORDER)
