"""What the card says of the coordinator is true: from its view alone it has all records up to an isometry (claim 6).

The attack uses nothing but what the coordinator received and what it sent: replies, which it adds up and decodes, and
labels. It is done here on purpose, so that nobody softens the statement by mistake.
"""

import numpy as np
import pytest

from tests.protocols.secfc.sessions import SecfcSession, read_path, spread
from tests.protocols.secfc.test_leakage import distances_of, replies_of
from tests.sessions import split


def read_columns(run, session):
    """(members' weights, squared distances to their mean) for every cluster of every round that was measured."""
    labels = read_path(run, session.agreement)
    scale = session.coding.fixed_point.scale
    for request, _, words in replies_of(run, session):
        decoded = distances_of(words, session.coding.field)
        for place, h in enumerate(request.columns):
            member = (labels[request.news.version] == h).astype(float)
            yield member / member.sum(), decoded[:, place].astype(float) / member.sum() ** 2 / scale**2


def recover_gram(run, session, dimensions, columns_most=None):
    """Return the centred records' inner products G, up to how much of them the columns show.

    A column is D = |x_i|^2 - 2 x_i . mu + |mu|^2 with mu = X^T a. The difference of two columns, centred over i, is
    -2 G (a - a'), since a and a' add up to 1 each. With A the differences of weights, Y = G A is known, and
    G = Y (A^T Y)^+ Y^T as soon as A reaches every direction of the records (Nystroem).
    """
    columns = list(read_columns(run, session))[:columns_most]
    weights = np.array([a for a, _ in columns]).T
    squares = np.array([d for _, d in columns]).T
    a = weights[:, 1:] - weights[:, :1]
    y = squares[:, 1:] - squares[:, :1]
    y = (y - y.mean(axis=0)) / -2
    inner = (a.T @ y + y.T @ a) / 2
    values, vectors = np.linalg.eigh(inner)
    keep = np.argsort(-np.abs(values))[:dimensions]
    half = y @ (vectors[:, keep] / np.sqrt(values[keep]))
    return half @ half.T


def centred(points):
    return points - points.mean(axis=0)


CASES = [(3, 2, 4), (4, 3, 6), (3, 5, 2)]


def play(clusters, dimensions, seed):
    session = SecfcSession(split(spread(60, dimensions, seed=seed), 5), clusters=clusters, privacy=2)
    run, _ = session.run(record_views=True)
    points = np.concatenate([session.coding.fixed_point.quantise(part) for part in session.records])
    return session, run, points


@pytest.mark.parametrize(("clusters", "dimensions", "seed"), CASES)
def test_the_coordinator_alone_recovers_all_distances_between_records(clusters, dimensions, seed):
    session, run, points = play(clusters, dimensions, seed)
    gram = recover_gram(run, session, dimensions)
    true = centred(points) @ centred(points).T
    assert np.abs(gram - true).max() < 1e-6
    norms = np.diag(gram)
    distances = norms[:, None] + norms - 2 * gram
    assert np.abs(distances - ((points[:, None] - points) ** 2).sum(axis=2)).max() < 1e-5


@pytest.mark.parametrize(("clusters", "dimensions", "seed"), CASES)
def test_with_one_clients_records_it_recovers_every_record_of_every_client(clusters, dimensions, seed):
    session, run, points = play(clusters, dimensions, seed)
    values, vectors = np.linalg.eigh(recover_gram(run, session, dimensions))
    shape = vectors[:, -dimensions:] * np.sqrt(values[-dimensions:])  # the records, turned, mirrored and shifted
    helper = slice(0, len(session.records[0]))
    known = points[helper]
    left, _, right = np.linalg.svd(centred(shape[helper]).T @ centred(known))
    found = (shape - shape[helper].mean(axis=0)) @ (left @ right) + known.mean(axis=0)
    assert np.array_equal(session.coding.fixed_point.quantise(found), points)


@pytest.mark.parametrize(("clusters", "dimensions", "seed"), CASES)
def test_about_d_over_k_minus_one_rounds_are_enough_and_fewer_are_not(clusters, dimensions, seed):
    """One round shows k - 1 directions. With fewer columns than d + 1 there are records that fit and are not these."""
    session, run, points = play(clusters, dimensions, seed)
    true = centred(points) @ centred(points).T
    rounds = -(-dimensions // (clusters - 1))
    enough = recover_gram(run, session, dimensions, rounds * clusters)
    assert np.abs(enough - true).max() < 1e-4
    known = list(read_columns(run, session))[:dimensions]
    directions = np.array([a for a, _ in known[1:]]) - known[0][0]
    assert np.linalg.matrix_rank(directions @ centred(points)) < dimensions
