"""The plan of a session with joint cells: plaintext modulus, primes, and how many of them are left after each product.

Pointwise products need slots, so t is a prime that is 1 modulo 2N. An answer then weights coefficients with numbers
up to t / 2 (:func:`~cloister.lattice.slots.encode_weights`), whatever the size of the weights in the slots:
that, and not the products, is what most of the modulus is for. The plan is the cheapest chain of levels under which
every answer is right; all of it follows from public numbers, so every party computes the same.

The bounds on a product's error hold but for probability 2^-40 per answer. Everything is in units of t: a ciphertext's
v = f m + t e is written v = t g. Two numbers describe a random polynomial g:

* its *proxy*: for every fixed polynomial w, a coefficient of w g is sub-Gaussian with parameter proxy |w|;
* its *reach*: a bound on |g(zeta)| at every complex root zeta of X^N + 1. Reaches multiply, and |g h| <= reach(g) |h|.

A secret or error with independent coefficients of parameter sigma has the reach sigma sqrt(N) spread, spread^2 = 1 +
sqrt(2x) + x with x = ln(events N / 2) + 44 ln 2 (Hsu, Kakade, Zhang, "A tail inequality for quadratic forms of
subgaussian random vectors", 2012, for the real and imaginary part together). Rounding errors and the digits of
relinearisation are taken as uniform and independent; that is the usual model of a ciphertext's residues, and the one
assumption here beyond RLWE. Proof: docs/proofs/joint-cells.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import ceil, log, log2, prod, sqrt

from cloister.errors import ConfigError
from cloister.lattice.noise import FLOOD_REACH_STD, SWITCH_SHARE, rerandomisation_bound
from cloister.lattice.parameters import FAILURE_BITS, MODULUS_BITS_MAX, Load, Parameters, parameters_at
from cloister.lattice.products import scaling_factor
from cloister.lattice.ring import PRIME_BITS, is_prime
from cloister.lattice.sampling import ERROR_STD

_TERNARY_PROXY = sqrt(2 / 3)
_UNIFORM_PROXY = sqrt(1 / 12)  # of a rounding error on -1/2..1/2
DEGREE = 8192
_PRIMES_MAX = 8  # of 26.75 bits then: all of the 214 that the table allows at this degree
HOLDERS_MIN, HOLDERS_MAX = 2, 3


@dataclass(frozen=True, kw_only=True)
class ProductNoise:
    """Bounds for one ring, plaintext modulus and key.

    Attributes
    ----------
    degree
        N.
    plaintext_modulus
        t.
    key_holders
        How many ternary secrets the key is a sum of; with more than one, the relinearisation key is the collective one.
    polynomials
        How many ciphertexts a session has: all of them must keep to their reach.
    failure_bits
        Each event that the bounds rest on fails with a probability below 2^-failure_bits.
    """

    degree: int
    plaintext_modulus: int
    key_holders: int
    polynomials: int
    failure_bits: int = FAILURE_BITS

    @property
    def spread(self) -> float:
        """Reach of a polynomial with independent coefficients over its deviation sigma sqrt(N)."""
        x = self.failure_bits * log(2) + log(self.polynomials * self.degree / 2)
        return sqrt(1 + sqrt(2 * x) + x)

    def reach(self, proxy: float) -> float:
        """Return the reach of a polynomial from its proxy."""
        return proxy * sqrt(self.degree) * self.spread

    @property
    def tail(self) -> float:
        """How many proxies a sub-Gaussian number stays within."""
        return sqrt(2 * log(2) * (self.failure_bits + 1))

    @property
    def secret_reach(self) -> float:
        """Reach of the key: a sum of ternary secrets."""
        return self.reach(_TERNARY_PROXY * sqrt(self.key_holders))

    @property
    def key_error_reach(self) -> float:
        """Reach of the error of a public key: a sum of the holders' errors."""
        return self.reach(ERROR_STD * sqrt(self.key_holders))

    @property
    def fresh_proxy(self) -> float:
        """Proxy of e_pk u + e2 - e1 s given the key: linear in u (ternary), e1 and e2."""
        of_errors = ERROR_STD * sqrt(1 + self.secret_reach**2)
        return sqrt((_TERNARY_PROXY * self.key_error_reach) ** 2 + of_errors**2)

    @property
    def rounding_proxy(self) -> float:
        """Proxy of r_body - r_mask s, what dividing a ciphertext by primes adds."""
        return _UNIFORM_PROXY * sqrt(1 + self.secret_reach**2)

    @property
    def message_reach(self) -> float:
        """Reach of m / t: N coefficients of at most 1/2."""
        return self.degree / 2

    def relinearisation_proxy(self, prime_count: int) -> float:
        """Proxy of sum_i digit_i e_i given the key's errors: digits uniform on +-p/2.

        One holder: e_i as drawn. Collective: s e0 + u e1 + e2 + e3, each a sum over the holders.
        """
        error = self.key_error_reach
        if self.key_holders > 1:
            error = 2 * error * (self.secret_reach + 1)
        return _UNIFORM_PROXY * 2.0**PRIME_BITS * sqrt(prime_count) * error

    def uploaded_proxy(self, divisor: float) -> float:
        """Proxy of a fresh ciphertext that its encryptor has divided by some primes (1: by none)."""
        rounding = self.rounding_proxy if divisor > 1 else 0.0
        return sqrt((self.fresh_proxy / divisor) ** 2 + rounding**2)

    def uploaded_reach(self, divisor: float) -> float:
        """Reach of the same, message included."""
        return self.reach(self.uploaded_proxy(divisor)) + self.message_reach

    def product_reach(self, left: float, right: float, prime_count: int) -> float:
        """Reach of a product after relinearisation, before division: v1 v2 / t = t g1 g2."""
        return self.plaintext_modulus * left * right + self.reach(self.relinearisation_proxy(prime_count))

    def divided_reach(self, reach: float, divisor: float) -> float:
        """Reach after division by primes."""
        return reach / divisor + self.reach(self.rounding_proxy)

    def answer_bound(
        self,
        *,
        left: float,
        divisor_right: float,
        divisor: float,
        prime_count: int,
        weight_norm: float,
        left_cells: int,
        right_cells: int,
        blocks: int,
    ) -> float:
        """Bound the error of an answer: the sum over cells of <weights, error of the product / divisor>.

        Given the left factors (reach ``left``), a product is linear in what the right encryptor drew, independently for
        each of its cells and blocks: those add up by their squares. The left factors are not independent of each other
        there, and are added up linearly. Digits and roundings are independent everywhere.

        Parameters
        ----------
        left
            Reach of the left factors of the last product.
        divisor_right
            What the right encryptor divided by.
        divisor
            What the products are divided by.
        prime_count
            Primes at the last product.
        weight_norm
            Euclidean norm of the weights of one cell, over all blocks.
        left_cells, right_cells, blocks
            Factors of the last product, and blocks of records, in an answer.
        """
        drawn = self.tail * self.uploaded_proxy(divisor_right) * sqrt(right_cells)
        # In each block |m_right / t| <= sqrt(N) / 2, and sum |w_b| <= sqrt(blocks) |w|.
        messages = sqrt(self.degree * blocks) / 2 * right_cells
        product = self.plaintext_modulus * left * left_cells * (drawn + messages)
        root = self.tail * sqrt(left_cells * right_cells)
        relinearised = root * self.relinearisation_proxy(prime_count)
        return weight_norm * ((product + relinearised) / divisor + root * self.rounding_proxy)


@dataclass(frozen=True, kw_only=True)
class JointLoad:
    """What the answers of a session add up, all public bounds.

    Attributes
    ----------
    records
        Number of aligned records.
    cells
        Cells of each encrypted column holder, two or three of them.
    sum_max
        Largest absolute value of an answer, the reach of the privacy noise included.
    factor_max
        The largest factor by which a sum of encoded weights is multiplied: it multiplies the error, unreduced.
    key_holders
        How many secrets the key is a sum of.
    failure_bits
        Each event that the bounds rest on fails with a probability below 2^-failure_bits.
    """

    records: int
    cells: tuple[int, ...]
    sum_max: int
    factor_max: int = 1
    key_holders: int = 1
    failure_bits: int = FAILURE_BITS

    def __post_init__(self) -> None:
        if not HOLDERS_MIN <= len(self.cells) <= HOLDERS_MAX:
            raise ConfigError(
                f"joint cells are of {HOLDERS_MIN} or {HOLDERS_MAX} encrypted column holders; got {len(self.cells)}. "
                "More holders need the comparison variant."
            )
        if min(self.records, self.sum_max, self.factor_max, self.key_holders, *self.cells) < 1:
            raise ConfigError(f"all bounds of a joint load must be at least 1; got {self}.")

    @property
    def blocks(self) -> int:
        """Blocks of N records."""
        return -(-self.records // DEGREE)

    @property
    def plaintext_modulus(self) -> int:
        """The least prime that is 1 modulo 2N and above twice the largest answer."""
        return find_slot_prime(2 * self.sum_max)

    @property
    def noise(self) -> ProductNoise:
        """The bounds for this load."""
        products = sum(prod(self.cells[: place + 1]) for place in range(1, len(self.cells)))
        return ProductNoise(
            degree=DEGREE,
            plaintext_modulus=self.plaintext_modulus,
            key_holders=self.key_holders,
            polynomials=self.blocks * (sum(self.cells) + products),
            failure_bits=self.failure_bits,
        )


@dataclass(frozen=True, kw_only=True)
class ProductPlan:
    """A chain of levels.

    Attributes
    ----------
    load
        What it was made for.
    parameters
        All primes: what keys are made for.
    levels
        Prime counts: at the first product, ..., at the last product, and of the joint cells.
    """

    load: JointLoad
    parameters: Parameters
    levels: tuple[int, ...]

    @property
    def final(self) -> Parameters:
        """Parameters of the joint cells, of the weights, and of every answer."""
        return parameters_at(self.parameters, self.levels[-1])

    def holder_level(self, holder: int) -> int:
        """Return how many primes the ciphertexts of a column holder have: those of the product it enters."""
        return self.levels[max(holder - 1, 0)]

    def holder_factor(self, holder: int) -> int:
        """Return the factor of a column holder's plaintexts: the first makes up for every division, others have 1."""
        if holder:
            return 1
        divided = prod(self.parameters.primes[self.levels[-1] : self.levels[0]])
        return scaling_factor(self.final) * divided % self.parameters.plaintext_modulus

    @property
    def error_bound(self) -> float:
        """The largest error of an answer before any flood or smudge, in units of the final modulus."""
        noise, load = self.load.noise, self.load
        uploaded = [noise.uploaded_reach(self._divisor(level)) for level in self.levels[:-1]]
        left = uploaded[0]
        for place in range(len(load.cells) - 2):
            reach = noise.product_reach(left, uploaded[place], self.levels[place])
            left = noise.divided_reach(reach, self._ratio(place))
        products = noise.answer_bound(
            left=left,
            divisor_right=self._divisor(self.levels[-2]),
            divisor=self._ratio(len(self.levels) - 2),
            prime_count=self.levels[-2],
            weight_norm=load.factor_max * load.plaintext_modulus / 2 * sqrt(load.blocks * DEGREE),
            left_cells=prod(load.cells[:-1]),
            right_cells=load.cells[-1],
            blocks=load.blocks,
        )
        # delta m differs from q m / t by less than |m|.
        answers = Load(
            sum_max=load.sum_max,
            terms=1,
            weight_max=1,
            key_holders=load.key_holders,
            failure_bits=load.failure_bits,
        )
        return products + rerandomisation_bound(self.final, answers) + load.plaintext_modulus / 2

    @property
    def flood_reach_max(self) -> float:
        """The largest absolute flood or sum of smudges under which every answer is still right; below 0 if none is.

        Products themselves must not pass q either: t times their reach stays below half the modulus of their level.
        """
        noise = self.load.noise
        left = noise.uploaded_reach(self._divisor(self.levels[0]))
        for place, level in enumerate(self.levels[:-1]):
            reach = noise.product_reach(left, noise.uploaded_reach(self._divisor(level)), level)
            if reach * noise.plaintext_modulus >= prod(self.parameters.primes[:level]) / 2:
                return -1.0
            left = noise.divided_reach(reach, self._ratio(place))
        return (1 - SWITCH_SHARE) * self.final.delta / 2 - self.error_bound

    def _divisor(self, level: int) -> float:
        """Return what an encryptor divides by to reach a level."""
        return float(prod(self.parameters.primes[level:]))

    def _ratio(self, place: int) -> float:
        """Return what is divided by after a product."""
        return float(prod(self.parameters.primes[self.levels[place + 1] : self.levels[place]]))


def choose_product_plan(
    load: JointLoad, *, flood_std_min: float = 0.0, smudge_distance_bits: int = 0, smudgers: int = 1
) -> ProductPlan:
    """Return the plan with the fewest final primes (rounds and memory), then the fewest transforms in the products.

    Parameters
    ----------
    load
        What is added up.
    flood_std_min
        Standard deviation that a Gaussian flood must be able to have.
    smudge_distance_bits, smudgers
        Where above 0: room for so many uniform floods, each hiding the error to a statistical distance of 2^-bits.

    Raises
    ------
    ConfigError
        If no chain within the standard's table has the room; says how many bits are lacking.
    """
    room_lacking_bits = float("inf")
    for plan in _list_plans(load):
        smudge = (
            smudgers * 2.0 ** (ceil(log2(plan.error_bound)) + smudge_distance_bits) if smudge_distance_bits else 0.0
        )
        needed = max(FLOOD_REACH_STD * flood_std_min, smudge)
        if plan.flood_reach_max > needed:
            return plan
        lacking = log2((needed + plan.error_bound) / (plan.final.delta / 2)) + 1
        room_lacking_bits = min(room_lacking_bits, max(lacking, 1.0))
    raise ConfigError(
        f"answers up to 2^{log2(load.sum_max):.0f} over {load.records} records in {prod(load.cells)} joint cells "
        f"must fit {MODULUS_BITS_MAX[DEGREE]} bits with their products and floods; "
        f"at least {room_lacking_bits:.0f} bits are lacking. "
        "Use fewer fractional bits, fewer cells, or charge the flood instead of a statistical one."
    )


def _list_plans(load: JointLoad) -> list[ProductPlan]:
    """Return all chains, cheapest first: final primes, then squares of the primes at each product, then all primes."""
    steps = len(load.cells)
    plans = []
    for top in range(steps, _PRIMES_MAX + 1):
        parameters = _make_parameters(top, load.plaintext_modulus)
        for chosen in combinations(range(top, 0, -1), steps):
            if load.plaintext_modulus <= prod(parameters.primes[: chosen[-1]]) // 4:
                plans.append(ProductPlan(load=load, parameters=parameters, levels=chosen))
    counts = [prod(load.cells[: place + 2]) for place in range(steps - 1)]

    def price(plan: ProductPlan) -> tuple[int, int, int]:
        transforms = sum(count * level**2 for count, level in zip(counts, plan.levels, strict=False))
        return plan.levels[-1], transforms, len(plan.parameters.primes)

    return sorted(plans, key=price)


@cache
def find_slot_prime(above: int) -> int:
    """Return the least prime above a number that is 1 modulo 2N and not one of the ciphertext's primes.

    Raises
    ------
    ConfigError
        If no such prime is below 2^27.
    """
    step = 2 * DEGREE
    taken = {prime for count in range(1, _PRIMES_MAX + 1) for prime in _make_parameters(count, 2).primes}
    for candidate in range(-(-above // step) * step + 1, 1 << PRIME_BITS, step):
        if is_prime(candidate) and candidate not in taken:
            return candidate
    raise ConfigError(
        f"twice the largest answer of joint cells must be below 2^{PRIME_BITS}; got 2^{log2(above):.1f}. "
        "Use fewer fractional bits."
    )


@cache
def _make_parameters(prime_count: int, plaintext_modulus: int) -> Parameters:
    return Parameters.make(DEGREE, prime_count, plaintext_modulus)
