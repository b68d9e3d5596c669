"""How large the error of an answer can be, how much flooding it leaves room for, and the smallest ring with that room.

Every bound holds with probability at least 1 - 2^-40 for one answer, over keys, errors and masks; the proofs are in
docs/proofs/lattice.md. Errors and ternary secrets are sub-Gaussian with their own variances as proxies (sigma^2 and
2/3), so a fixed combination is below ``tail`` times the root of its variance; products of two random polynomials are
bounded one factor after the other.

The room delta / 2 of an answer is divided: 7/8 for error, re-randomisation and flood, 1/8 for the last switch to a
small modulus.
"""

from __future__ import annotations

from math import ceil, log, log2, sqrt

from cloister.errors import ConfigError
from cloister.lattice.parameters import MODULUS_BITS_MAX, Load, Parameters
from cloister.lattice.ring import PRIME_BITS
from cloister.lattice.sampling import ERROR_STD

FLOOD_REACH_STD = 9.0  # a Gaussian flood passes 9 standard deviations with probability below 2^-61
SWITCH_BITS_MAX = 60
_TERNARY_VARIANCE = 2 / 3
SWITCH_SHARE = 1 / 8  # the part of an answer's room that is left to the switch to a small modulus
# Degree and number of primes of up to 27 bits, in order of cost: moduli of 53, 81, 106 bits, and up to 214.
_LADDER = ((2048, 2), (4096, 3), (4096, 4), (8192, 5), (8192, 6), (8192, 7), (8192, 8))


def error_bound(parameters: Parameters, load: Load) -> float:
    """Return a bound on the weighted sum of fresh errors in one answer, in units of the modulus q.

    Under a secret key: <w, e>. Under a public key: <w, e2> + <e_pk * u, w> - <e1 * s, w>, where a coordinate of
    u * w~ is below ``each`` times its deviation, for all N of them.
    """
    weight_norm = sqrt(load.terms) * load.weight_max
    own = load.tail * ERROR_STD * weight_norm
    if not load.public_key:
        return own
    each = sqrt(2 * (load.failure + log(2 * parameters.degree)))
    return own + 2 * load.tail * each * _product_std(parameters, load, sqrt(_TERNARY_VARIANCE)) * weight_norm


def rerandomisation_bound(parameters: Parameters, load: Load) -> float:
    """Return a bound on the error that a fresh encryption of zero with Gaussian u adds to one answer.

    <e_pk, u> - <e1, s> + e2, with |u|^2, |e1|^2 <= sigma^2 (N + 2 sqrt(N x) + 2x) but for probability e^-x.
    """
    key_error = _product_std(parameters, load, ERROR_STD)
    secret = sqrt(_TERNARY_VARIANCE * load.key_holders * parameters.degree) * ERROR_STD
    return load.tail * (_norm_spread(parameters, load) * (key_error + secret) + ERROR_STD)


def switching_bound(parameters: Parameters, load: Load, bits: int) -> float:
    """Return a bound on the error of rounding mask and body to modulo 2^bits, in that modulus's units.

    Each of N mask coefficients and the body is moved by at most r = 1/2 + L 2^(bits - 64), the latter because fractions
    have 64 bits: r + <rounding, s>.
    """
    moved = 0.5 + len(parameters.primes) * 2.0 ** (bits - 64)
    return moved * (1 + load.tail * sqrt(_TERNARY_VARIANCE * load.key_holders * parameters.degree))


def answer_error_bound(parameters: Parameters, load: Load, *, coefficients: int = 1) -> float:
    """Return a bound on an answer's whole error before any flood: fresh errors and re-randomisation.

    For several coefficients at once each tail is rarer by their number, which lengthens every factor alike at most.
    """
    longer = (load.failure + log(2 * coefficients)) / (load.failure + log(2))
    return longer * (error_bound(parameters, load) + rerandomisation_bound(parameters, load))


def flood_reach_max(parameters: Parameters, load: Load) -> float:
    """Return the largest absolute flooding error under which an answer is still right; below 0 when it is not."""
    return (1 - SWITCH_SHARE) * parameters.delta / 2 - answer_error_bound(parameters, load)


def flood_std_max(parameters: Parameters, load: Load) -> float:
    """Return the largest standard deviation of a Gaussian flood: its reach of nine deviations fits the room."""
    return max(0.0, flood_reach_max(parameters, load)) / FLOOD_REACH_STD


def hint_flood_std_min(parameters: Parameters, load: Load, secrets: int) -> float:
    """Return the least deviation of a Gaussian flood under which re-randomisation still hides the masks (Hint-RLWE).

    The key holder reads off ``secrets`` equations about (u, e1) with coefficients (e_pk, s), blurred by the flood. With
    a hundredfold of their squared norms as its variance, RLWE of deviation 2.15 remains (docs/proofs/lattice.md). A
    uniform flood of :func:`statistical_flood_bits` hides the equations altogether.
    """
    variance = load.key_holders * (ERROR_STD**2 + _TERNARY_VARIANCE)
    return 10 * _norm_spread(parameters, load) * sqrt(secrets * parameters.degree * variance)


def statistical_flood_bits(parameters: Parameters, load: Load, distance_bits: int = 40) -> int:
    """Return b such that a flood uniform on -2^b..2^b-1 hides an answer's error to distance 2^-distance_bits.

    Two such floods whose centres differ by 2E have statistical distance 2E / 2^(b+1).
    """
    return distance_bits + ceil(log2(answer_error_bound(parameters, load)))


def choose_switch_bits(parameters: Parameters, load: Load) -> int:
    """Return the fewest bits of a small modulus 2^bits whose rounding takes at most its share of the room.

    Raises
    ------
    ConfigError
        More than 60 bits would be needed; send the answers without switching.
    """
    share = SWITCH_SHARE * parameters.delta / parameters.modulus / 2
    for bits in range(1, SWITCH_BITS_MAX + 1):
        if switching_bound(parameters, load, bits) <= share * 2**bits:
            return bits
    raise ConfigError(
        f"a small modulus must have at most {SWITCH_BITS_MAX} bits; a plaintext modulus of "
        f"{parameters.plaintext_modulus.bit_length()} bits needs more. Send the answers without switching."
    )


def choose_parameters(load: Load, *, flood_std_min: float = 0.0, flood_distance_bits: int = 0) -> Parameters:
    """Return the cheapest parameters under which every answer is right and there is room for the flood.

    Parameters
    ----------
    load
        What is added up.
    flood_std_min
        The standard deviation that the flooding error must be able to have.
    flood_distance_bits
        Where above 0: room for a uniform flood that hides the error to a statistical distance of 2^-bits per answer
        (:func:`statistical_flood_bits`).

    Raises
    ------
    ConfigError
        No ring of the standard's table has the room.
    """
    lacking_bits = 0.0
    for degree, prime_count in _LADDER:
        if load.plaintext_modulus > 1 << (min(PRIME_BITS * prime_count, MODULUS_BITS_MAX[degree]) - 3):
            continue
        parameters = Parameters.make(degree, prime_count, load.plaintext_modulus)
        reach = FLOOD_REACH_STD * flood_std_min
        if flood_distance_bits:
            reach = max(reach, 2.0 ** statistical_flood_bits(parameters, load, flood_distance_bits))
        room = flood_reach_max(parameters, load)
        if room > reach:
            return parameters
        taken = answer_error_bound(parameters, load) + reach
        lacking_bits = log2(taken / (parameters.delta / 2)) + 1
    raise ConfigError(
        f"sums up to 2^{log2(load.sum_max):.0f} over {load.terms} terms with weights up to {load.weight_max} must fit "
        f"a modulus of {MODULUS_BITS_MAX[_LADDER[-1][0]]} bits; about {max(lacking_bits, 1):.0f} bits are lacking. "
        "Use fewer fractional bits, fewer cells or less flooding."
    )


def _norm_spread(parameters: Parameters, load: Load) -> float:
    """Return by what factor N coordinates of one deviation pass their expected norm, but for probability e^-x."""
    share = load.failure / parameters.degree
    return sqrt(1 + 2 * sqrt(share) + 2 * share)


def _product_std(parameters: Parameters, load: Load, factor_std: float) -> float:
    """Return sigma sqrt(h N) times a factor's deviation: a coefficient of the key's error times a random polynomial."""
    return ERROR_STD * sqrt(load.key_holders * parameters.degree) * factor_std
