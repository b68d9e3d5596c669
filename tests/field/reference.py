"""The paper's coding in Python's own integers, from section 4.1 alone; slow, and shares no code with the package."""

from fractions import Fraction


def interpolate(points, values, at, q):
    """Evaluate at one point the polynomial through (points, values), by Newton's divided differences."""
    coefficients = list(values)
    for order in range(1, len(points)):
        for i in range(len(points) - 1, order - 1, -1):
            gap = points[i] - points[i - order]
            coefficients[i] = (coefficients[i] - coefficients[i - 1]) * pow(gap, -1, q) % q
    result = 0
    for coefficient, point in zip(reversed(coefficients), reversed(points), strict=True):
        result = (result * (at - point) + coefficient) % q
    return result


def share_record(segments, noises, betas, alphas, q):
    """Equation (2): the shares of one record whose segments and noises are lists of one length."""
    width = len(segments[0])
    return [
        [interpolate(betas, [row[c] for row in [*segments, *noises]], alpha, q) for c in range(width)]
        for alpha in alphas
    ]


def exact_distances(records, labels, k):
    """d'_ih = |sum_{S_h} x - |S_h| x_i|^2 over the integers."""
    rows = [[int(x) for x in row] for row in records]
    clusters = [[row for row, label in zip(rows, labels, strict=True) if label == h] for h in range(k)]
    sums = [[sum(column) for column in zip(*cluster, strict=True)] or [0] * len(rows[0]) for cluster in clusters]
    return [
        [
            sum((s - len(cluster) * x) ** 2 for s, x in zip(total, row, strict=True))
            for total, cluster in zip(sums, clusters, strict=True)
        ]
        for row in rows
    ]


def exact_nearest(distances, counts):
    """The lowest h with the least d'_h / c_h^2 among clusters that are not empty, by fractions."""
    return [
        min((Fraction(int(d), int(c) ** 2), h) for h, (d, c) in enumerate(zip(row, counts, strict=True)) if c)[1]
        for row in distances
    ]
