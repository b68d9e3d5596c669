"""The code: any t shares say nothing, any l + t say everything, and every large enough set decodes."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.crypto import Stream
from cloister.errors import ConfigError, LocalProtocolError
from cloister.field import FIELD61, FIELD122, Field, LagrangeCode
from tests.field.reference import interpolate, share_record
from tests.field.test_prime_field import ScriptedStream

FIELDS = (FIELD61, FIELD122, Field(moduli=(97,)), Field(moduli=(31, 29)))


def share_with_every_noise(code, secret):
    """Every client's shares of one record of l coordinates, once for each of the q^t noises: (q^t, n)."""
    (q,) = code.field.moduli
    noises = list(itertools.product(range(q), repeat=code.privacy))
    shift = 64 - q.bit_length()
    stream = ScriptedStream([noise[v] << shift for v in range(code.privacy) for noise in noises])
    points = code.field.encode(np.tile(np.array(secret), (len(noises), 1)))
    return code.share(points, stream)[:, 0, :, 0].T.astype(int)


def every_secret(code):
    return itertools.product(range(code.field.moduli[0]), repeat=code.segments)


SMALL_CODES = [
    LagrangeCode(field=Field(moduli=(q,)), clients=n, segments=segments, privacy=privacy)
    for q, n, segments, privacy in [
        (5, 3, 1, 1),
        (7, 4, 1, 1),
        (11, 5, 2, 1),
        (11, 5, 1, 2),
        (11, 7, 2, 2),
        (11, 7, 1, 3),
    ]
]


@pytest.mark.parametrize("code", SMALL_CODES, ids=repr)
def test_any_t_shares_are_uniform_whatever_the_record(code):
    q, t = code.field.moduli[0], code.privacy
    uniform = Counter(itertools.product(range(q), repeat=t))
    secrets = list(every_secret(code))
    for secret in secrets[:: max(1, len(secrets) // 25)]:
        table = share_with_every_noise(code, secret)
        for coalition in itertools.combinations(range(code.clients), t):
            assert Counter(map(tuple, table[:, coalition].tolist())) == uniform


@pytest.mark.parametrize("code", SMALL_CODES, ids=repr)
def test_one_share_more_depends_on_the_record(code):
    # With t + 1 shares there are q^t outcomes of q^(t+1): which ones tells records apart.
    secrets = [secret for secret in every_secret(code) if max(secret) < 2]
    seen = {
        frozenset(map(tuple, share_with_every_noise(code, secret)[:, : code.privacy + 1].tolist()))
        for secret in secrets
    }
    assert len(seen) > 1


@pytest.mark.parametrize("code", SMALL_CODES[:4], ids=repr)
def test_all_shares_together_have_the_law_of_the_papers_equation(code):
    (q,) = code.field.moduli
    unused = (0, *range(code.segments + code.clients + 1, q))
    betas = code.betas + unused[: code.privacy]
    assert len(betas) == code.holders
    for secret in list(every_secret(code))[::3]:
        paper = Counter(
            tuple(row[0] for row in share_record([[x] for x in secret], [[z] for z in noise], betas, code.alphas, q))
            for noise in itertools.product(range(q), repeat=code.privacy)
        )
        assert Counter(map(tuple, share_with_every_noise(code, secret).tolist())) == paper


def random_elements(field, *shape, seed=1):
    return field.uniform(Stream.from_seed(seed, "records"), *shape)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(("clients", "segments", "privacy"), [(3, 1, 1), (6, 2, 1), (7, 1, 2), (7, 2, 2)])
@pytest.mark.parametrize("dimensions", [2, 5])
def test_every_l_plus_t_clients_reveal_the_records(field, clients, segments, privacy, dimensions):
    code = LagrangeCode(field=field, clients=clients, segments=segments, privacy=privacy)
    points = random_elements(field, 4, dimensions)
    shares = code.share(points, Stream.from_seed(3, "noise"))
    assert shares.shape == (clients, field.residues, 4, -(-dimensions // segments))
    for holders in itertools.combinations(range(1, clients + 1), segments + privacy):
        revealed = code.reveal(holders, shares[[j - 1 for j in holders]], dimensions)
        assert (revealed == points).all()


@pytest.mark.parametrize("field", FIELDS)
def test_shares_lie_on_one_polynomial_through_the_segments(field):
    code = LagrangeCode(field=field, clients=9, segments=2, privacy=3)
    points = random_elements(field, 3, 6)
    shares = code.share(points, Stream.from_seed(4, "noise"))
    for r, q in enumerate(field.moduli):
        nodes = [*code.betas, *code.alphas[:3]]
        for i, c, j in itertools.product(range(3), range(3), range(9)):
            values = [int(points[r, i, c]), int(points[r, i, 3 + c]), *(int(shares[v, r, i, c]) for v in range(3))]
            assert int(shares[j, r, i, c]) == interpolate(nodes, values, code.alphas[j], q)


def test_blocks_are_seamless_and_their_noise_is_fresh():
    code = LagrangeCode(field=FIELD61, clients=5, segments=1, privacy=2)
    points = FIELD61.zeros(9000, 3)
    shares = code.share(points, Stream.from_seed(5, "noise"))
    assert not code.reveal((2, 4, 5), shares[[1, 3, 4]], 3).any()
    assert len(np.unique(shares)) == shares.size


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(("clients", "segments", "privacy"), [(3, 1, 1), (5, 1, 1), (7, 2, 1), (8, 2, 2)])
def test_the_weights_sum_any_polynomial_of_that_degree_from_every_set(field, clients, segments, privacy):
    code = LagrangeCode(field=field, clients=clients, segments=segments, privacy=privacy)
    degree = 2 * (segments + privacy - 1)
    assert code.replies == degree + 1
    for r, q in enumerate(field.moduli):
        coefficients = [int(x) for x in random_elements(field, degree + 1, seed=6)[r]]
        values = {
            j: sum(c * code.alphas[j - 1] ** e for e, c in enumerate(coefficients)) for j in range(1, clients + 1)
        }
        target = sum(c * beta**e for beta in code.betas for e, c in enumerate(coefficients)) % q
        for responders in itertools.combinations(range(1, clients + 1), code.replies):
            weights = code.weigh_distances(responders)[r]
            assert sum(int(w) * values[j] for w, j in zip(weights, responders, strict=True)) % q == target
            for place, j in enumerate(responders):
                assert code.weigh_client(responders[::-1], j)[r] == weights[place]


@settings(deadline=None, max_examples=25)
@given(st.sampled_from([FIELD61, FIELD122]), st.integers(1, 4), st.integers(1, 4), st.integers(0, 3), st.data())
def test_products_of_shares_decode_from_any_large_enough_set(field, segments, privacy, spare, data):
    n = 2 * segments + 2 * privacy - 1 + spare
    code = LagrangeCode(field=field, clients=n, segments=segments, privacy=privacy)
    values = data.draw(st.lists(st.integers(-1000, 1000), min_size=segments, max_size=segments))
    shares = code.share(field.encode(np.array([values])), Stream.from_seed(data.draw(st.integers(0, 99)), "noise"))
    squares = field.zeros(n)
    for r, q in enumerate(field.moduli):
        squares[r] = [int(share) ** 2 % q for share in shares[:, r, 0, 0]]
    responders = data.draw(st.permutations(range(1, n + 1)))[: code.replies]
    replies = np.stack([squares[:, j - 1 : j] for j in sorted(responders)])
    decoded = field.decode(code.combine_distances(responders, replies))
    assert decoded.tolist() == [sum(x * x for x in values)]


def test_a_client_without_records_has_nothing_to_share():
    code = LagrangeCode(field=FIELD122, clients=5, segments=2, privacy=1)
    assert code.share(FIELD122.zeros(0, 3), Stream.from_seed(1, "noise")).shape == (5, 2, 0, 2)


def test_who_is_not_decoded_has_no_weight():
    code = LagrangeCode(field=FIELD61, clients=5, segments=1, privacy=1)
    with pytest.raises(LocalProtocolError, match="only a responder has a weight"):
        code.weigh_client((1, 2, 4), 3)


def test_many_clients_pass_the_lazy_limit_of_the_kernels():
    code = LagrangeCode(field=FIELD61, clients=140, segments=2, privacy=68)
    points = FIELD61.encode(np.array([[123, -456, 789]]))
    shares = code.share(points, Stream.from_seed(7, "noise"))
    holders = range(71, 141)
    assert FIELD61.decode(code.reveal(holders, shares[70:], 3)).tolist() == [[123, -456, 789]]


@pytest.mark.parametrize(
    ("clients", "segments", "privacy", "advice"),
    [
        (10, 2, 4, "11 > 10. Use n = 11 or more clients, or t = 3 with l = 2, or l = 1 with t = 4."),
        (4, 1, 2, "5 > 4. Use n = 5 or more clients, or t = 1 with l = 1."),
        (5, 3, 3, "11 > 5. Use n = 11 or more clients, or t = 2 with l = 1."),
        (2, 1, 1, "3 > 2. Use n = 3 or more clients."),
    ],
)
def test_too_few_clients_are_told_what_would_do(clients, segments, privacy, advice):
    with pytest.raises(ConfigError) as raised:
        LagrangeCode(field=FIELD61, clients=clients, segments=segments, privacy=privacy)
    assert str(raised.value).endswith(advice)


@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 5))
def test_advice_is_true(clients, segments, privacy):
    try:
        LagrangeCode(field=FIELD61, clients=clients, segments=segments, privacy=privacy)
    except ConfigError as error:
        assert 2 * privacy + 2 * segments - 1 > clients
        for way in str(error).split("Use ")[1].rstrip(".").split(", or "):
            numbers = {"n": clients, "l": segments, "t": privacy}
            for name, value in zip(way.split()[::1], way.split()[2:], strict=False):
                if name in numbers:
                    numbers[name] = int(value)
            LagrangeCode(field=FIELD61, clients=numbers["n"], segments=numbers["l"], privacy=numbers["t"])
    else:
        assert 2 * privacy + 2 * segments - 1 <= clients


def test_parameters_that_make_no_code_are_refused():
    with pytest.raises(ConfigError, match="at least 1 segment"):
        LagrangeCode(field=FIELD61, clients=5, segments=1, privacy=0)
    with pytest.raises(ConfigError, match="distinct points"):
        LagrangeCode(field=Field(moduli=(5,)), clients=4, segments=1, privacy=1)


@pytest.mark.parametrize("chosen", [(1, 2), (1, 2, 2), (0, 1, 2), (3, 4, 5), (1, 2, 3, 4)])
def test_a_set_of_the_wrong_clients_is_a_bug_here(chosen):
    code = LagrangeCode(field=FIELD61, clients=4, segments=1, privacy=1)
    with pytest.raises(LocalProtocolError, match="3 different clients between 1 and 4"):
        code.weigh_distances(chosen)


def test_arrays_of_the_wrong_shape_are_a_bug_here():
    code = LagrangeCode(field=FIELD61, clients=5, segments=2, privacy=1)
    stream = Stream.from_seed(1, "noise")
    with pytest.raises(LocalProtocolError, match="at least l = 2"):
        code.share(FIELD61.zeros(3, 1), stream)
    with pytest.raises(LocalProtocolError, match="shares of 1 residues"):
        code.reveal((1, 2, 3), np.zeros((2, 1, 3, 4), dtype=np.uint64), 8)
