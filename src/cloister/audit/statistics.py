"""Numbers that could tell two neighbouring inputs apart, fitted to recorded outputs.

Each candidate maps one output (a vector of released numbers) to one score. They are fitted on training runs and
compared on other training runs (:mod:`cloister.audit.events`), so a bad one costs power and never validity. They are
ordered from the simplest: among equals the first is reported, because its words say most about what is wrong.

========================  ==========================================================================================
candidate                 what it catches
========================  ==========================================================================================
one entry                 too little noise on one number, no noise
one entry minus another   one seed for two noises, noise reused in a later round, noise known to the receiver
weighted sum of all       too little noise in total, a norm that was not clipped (linear discriminant; several ridges)
log-likelihood ratio      noise whose size depends on the data (diagonal Gaussian fit)
largest deviation         an outlier in any entry
one entry's exact value   values that occur under one input only
one entry's low bits      rounded or floating-point noise that leaves the support of the exact sum visible
========================  ==========================================================================================

Exact values and low bits show what means and variances do not. Floating-point noise gives itself away in the last bits:
x + noise can only be a double of the sum's precision, so which doubles occur depends on x (Mironov, "On significance of
the least significant bits for differential privacy", 2012). Noise that is rounded coarsely, or missing, leaves exact
values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.audit.events import Statistic
from cloister.errors import LocalProtocolError
from cloister.records import FloatArray, IntArray

Outputs = NDArray[Any]
RIDGES = (1e-12, 1e-6, 1e-2)
_MOST_ENTRIES_IN_COVARIANCE = 1024
_SINGLE_ENTRIES = 12
_PAIRS = 8
_CORRELATED = 0.9
_MOST_VALUES = 64
_LOW_BITS = 3
_COLUMNS_TRIED = 64
_KEPT = 4
_EXPONENT_OF_ZERO = 1100.0  # above every double's: zero has no last bit


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Training outputs of both inputs, centred and scaled entry by entry."""

    centre: FloatArray
    scale: FloatArray
    without: FloatArray
    """(runs, entries), standardised."""
    present: FloatArray
    """The same with the record."""

    @property
    def difference(self) -> FloatArray:
        """The standardised difference of means."""
        result: FloatArray = self.present.mean(axis=0) - self.without.mean(axis=0)
        return result

    def standardise(self, outputs: Outputs) -> FloatArray:
        """Apply this fit's centre and scale to other outputs."""
        result: FloatArray = (outputs.astype(np.float64) - self.centre) / self.scale
        return result


def check_outputs(outputs: Outputs, *, runs: int) -> Outputs:
    """Return the outputs of ``runs`` runs as a matrix of finite numbers, or say what is wrong with them."""
    outputs = np.asarray(outputs)
    if outputs.ndim != 2 or outputs.shape[0] != runs or outputs.shape[1] < 1 or outputs.dtype.kind not in "biuf":
        raise LocalProtocolError(
            f"a mechanism under audit must return numbers of shape ({runs}, entries); "
            f"got {outputs.dtype} of shape {outputs.shape}."
        )
    if outputs.dtype.kind in "bu":
        outputs = outputs.astype(np.int64)
    if not np.isfinite(outputs).all():
        raise LocalProtocolError("a mechanism under audit must return finite numbers; got NaN or infinity.")
    return outputs


def fit_statistics(
    without: Outputs,
    present: Outputs,
    *,
    labels: Sequence[str] | None = None,
    difference: FloatArray | None = None,
) -> tuple[Statistic, ...]:
    """Fit every candidate to training outputs.

    Parameters
    ----------
    without, present
        (runs, entries): what was released on the input without and with the record.
    labels
        Names of the entries, for the words.
    difference
        The exact difference of the two inputs' vectors before noise, if the auditor knows it: differential privacy
        must hold against someone who does. Without it only the mean difference of the outputs is used.

    Returns
    -------
    tuple of Statistic
        From the simplest to the most complex.
    """
    entries = without.shape[1]
    names = tuple(labels) if labels is not None else tuple(f"entry {entry}" for entry in range(entries))
    if len(names) != entries or present.shape[1] != entries or (difference is not None and len(difference) != entries):
        raise LocalProtocolError(f"labels and the exact difference must name {entries} entries, one each.")
    fit = _standardise_both(without, present)
    return (
        *_single_entries(fit, names),
        *_pairs(fit, names),
        *_linear_discriminants(fit, difference),
        _likelihood_ratio(fit),
        _largest_deviation(fit),
        *fit_value_statistics(without, present, names),
        *fit_low_digit_statistics(without, present, names),
    )


def _standardise_both(without: Outputs, present: Outputs) -> Fit:
    """Centre at the mean without the record; scale by the deviation within each input."""
    a, b = without.astype(np.float64), present.astype(np.float64)
    centre = a.mean(axis=0)
    a, b = a - centre, b - centre
    shift = b.mean(axis=0)
    deviation = np.sqrt((a.var(axis=0) + b.var(axis=0)) / 2)
    # An entry without noise: scale by its shift, so that it is finite and stands out.
    scale = np.where(deviation > 0, deviation, np.where(shift != 0, np.abs(shift), 1.0))
    return Fit(centre=centre, scale=scale, without=a / scale, present=b / scale)


def _single_entries(fit: Fit, names: Sequence[str]) -> Iterator[Statistic]:
    """The entries whose means, and then whose spreads, differ most."""
    by_mean = np.argsort(-np.abs(fit.difference), kind="stable")[:_SINGLE_ENTRIES]
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.abs(np.log(fit.present.var(axis=0)) - np.log(fit.without.var(axis=0)))
    by_spread = np.argsort(-np.nan_to_num(spread), kind="stable")[:2]
    for entry in dict.fromkeys([*by_mean.tolist(), *by_spread.tolist()]):
        yield Statistic(words=names[entry], score=_weighted(fit, {entry: 1.0}))


def _pairs(fit: Fit, names: Sequence[str]) -> Iterator[Statistic]:
    """Differences of entries whose noises move together: what is left has little noise."""
    columns = _columns_for_covariance(fit)
    correlation = _within_covariance(fit, columns)
    first, second = np.triu_indices(len(columns), k=1)
    strength = np.abs(correlation[first, second])
    # What is left of a pair has variance 1 - r^2, and means that differ by d_a - r d_b: keep the largest ratio.
    shift = fit.difference[columns]
    left = shift[first] - correlation[first, second] * shift[second]
    gain = np.where(strength > _CORRELATED, np.abs(left) / np.sqrt(np.maximum(1 - strength**2, 1e-12)), 0.0)
    for pair in np.argsort(-gain, kind="stable")[:_PAIRS]:
        if gain[pair] == 0:
            return
        a, b = int(columns[first[pair]]), int(columns[second[pair]])
        ratio = float(correlation[first[pair], second[pair]])
        slope = ratio * fit.scale[a] / fit.scale[b]
        words = f"{names[a]} minus {slope:.4g} times {names[b]} (their noises move together: correlation {ratio:.4f})"
        yield Statistic(words=words, score=_weighted(fit, {a: 1.0, b: -ratio}))


def _linear_discriminants(fit: Fit, known: FloatArray | None) -> Iterator[Statistic]:
    """The sum of all entries weighted by (covariance + ridge)^-1 difference; ridge infinity is the plain projection."""
    directions = [("the mean difference", fit.difference)]
    if known is not None and np.any(known):
        directions.insert(0, ("the exact difference", known / fit.scale))
    columns = _columns_for_covariance(fit)
    values, vectors = np.linalg.eigh(_within_covariance(fit, columns))
    for name, direction in directions:
        yield Statistic(words=f"projection on {name}", score=_projection(fit, direction))
        for ridge in RIDGES:
            weights = np.zeros(len(direction))
            rotated = vectors.T @ direction[columns]
            weights[columns] = vectors @ (rotated / (np.maximum(values, 0.0) + ridge))
            words = f"linear discriminant along {name} (ridge {ridge:g})"
            yield Statistic(words=words, score=_projection(fit, weights))


def _likelihood_ratio(fit: Fit) -> Statistic:
    """Fit log p(x | with) - log p(x | without) for independent Gaussian entries with fitted means and variances."""
    mean_a, mean_b = fit.without.mean(axis=0), fit.present.mean(axis=0)
    var_a, var_b = (np.maximum(part.var(axis=0), 1e-12) for part in (fit.without, fit.present))

    def score(outputs: Outputs) -> FloatArray:
        z = fit.standardise(outputs)
        terms = (z - mean_a) ** 2 / var_a - (z - mean_b) ** 2 / var_b + np.log(var_a) - np.log(var_b)
        result: FloatArray = terms.sum(axis=1) / 2
        return result

    return Statistic(words="log-likelihood ratio of a diagonal Gaussian fit", score=score)


def _largest_deviation(fit: Fit) -> Statistic:
    def score(outputs: Outputs) -> FloatArray:
        result: FloatArray = np.abs(fit.standardise(outputs)).max(axis=1)
        return result

    return Statistic(words="largest deviation of any entry", score=score)


def _columns_for_covariance(fit: Fit) -> IntArray:
    """All entries, or those whose means differ most where there are too many for a covariance matrix."""
    order = np.argsort(-np.abs(fit.difference), kind="stable")
    return np.sort(order[:_MOST_ENTRIES_IN_COVARIANCE])


def _within_covariance(fit: Fit, columns: IntArray) -> FloatArray:
    """Covariance of the noise: within each input, so that the difference of means is not taken for noise."""
    total = np.zeros((len(columns), len(columns)))
    for part in (fit.without[:, columns], fit.present[:, columns]):
        centred = part - part.mean(axis=0)
        total += centred.T @ centred / len(centred) / 2
    return total


def _weighted(fit: Fit, weights: dict[int, float]) -> Callable[[Outputs], FloatArray]:
    """Score a weighted sum of a few standardised entries."""
    entries = np.array(list(weights))
    vector = np.array(list(weights.values()))

    def score(outputs: Outputs) -> FloatArray:
        z = (outputs[:, entries].astype(np.float64) - fit.centre[entries]) / fit.scale[entries]
        result: FloatArray = z @ vector
        return result

    return score


def _projection(fit: Fit, direction: FloatArray) -> Callable[[Outputs], FloatArray]:
    """Score a weighted sum of all standardised entries."""
    length = float(np.linalg.norm(direction))
    unit = direction / length if length > 0 else direction

    def score(outputs: Outputs) -> FloatArray:
        result: FloatArray = fit.standardise(outputs) @ unit
        return result

    return score


def fit_value_statistics(without: NDArray[Any], present: NDArray[Any], names: Sequence[str]) -> Iterator[Statistic]:
    """Score an entry with few distinct values by how much likelier its value was with the record."""
    found = []
    for entry in range(min(without.shape[1], _COLUMNS_TRIED)):
        if len(np.unique(without[:256, entry])) > _MOST_VALUES:
            continue  # quick look first: most released entries have many values
        values = np.unique(np.concatenate([without[:, entry], present[:, entry]]))
        if len(values) <= _MOST_VALUES:
            table, distance = _fit_table(without[:, entry], present[:, entry], values)
            found.append((distance, entry, values, table))
    for _, entry, values, table in _best(found):
        yield Statistic(words=f"exact value of {names[entry]}", score=_table_score(entry, values, table))


def fit_low_digit_statistics(without: NDArray[Any], present: NDArray[Any], names: Sequence[str]) -> Iterator[Statistic]:
    """Score an entry by its low bits, and by the exponent of its last set bit."""
    columns = range(min(without.shape[1], _COLUMNS_TRIED))
    if without.dtype.kind == "i":
        residues = np.arange(1 << _LOW_BITS)
        found = []
        for entry in columns:
            pair = (without[:, entry] & residues[-1], present[:, entry] & residues[-1])
            table, distance = _fit_table(*pair, residues)
            found.append((distance, entry, residues, table))
        for _, entry, values, table in _best(found):
            words = f"{names[entry]} modulo {1 << _LOW_BITS}"
            yield Statistic(words=words, score=_table_score(entry, values, table, mask=int(residues[-1])))
    shifts = []
    for entry in columns:
        a, b = last_bit_exponents(without[:, entry]), last_bit_exponents(present[:, entry])
        shifts.append((abs(float(b.mean() - a.mean())) / (float(a.std() + b.std()) or 1.0), entry))
    for shift, entry in sorted(shifts, reverse=True)[:_KEPT]:
        if shift > 0:
            yield Statistic(words=f"last binary digit of {names[entry]}", score=_last_bit_score(entry))


def last_bit_exponents(values: NDArray[Any]) -> FloatArray:
    """Return log2 of the lowest set bit of each number: 0 for 5, 2 for 12, -1 for 2.5."""
    if values.dtype.kind == "i":
        lowest = (values & -values).astype(np.float64)
        shift: Any = 0
    else:
        mantissas, exponents = np.frexp(values.astype(np.float64))
        whole = np.ldexp(mantissas, 53).astype(np.int64)  # exact: a double has 53 bits
        lowest = (whole & -whole).astype(np.float64)
        shift = exponents - 53
    with np.errstate(divide="ignore"):
        result = np.where(values == 0, _EXPONENT_OF_ZERO, np.log2(np.abs(lowest)) + shift)
    return np.asarray(result, dtype=np.float64)


def _fit_table(a: NDArray[Any], b: NDArray[Any], values: NDArray[Any]) -> tuple[FloatArray, float]:
    """Return each value's smoothed log frequency ratio, and the total variation distance."""
    count_a, count_b = (np.bincount(np.searchsorted(values, part), minlength=len(values)) for part in (a, b))
    table = np.log((count_b + 0.5) / (count_a + 0.5))
    return table, float(np.abs(count_b / len(b) - count_a / len(a)).sum() / 2)


def _best(found: list[Any]) -> list[Any]:
    """Keep the few with the largest distance."""
    return sorted((item for item in found if item[0] > 0), key=lambda item: (-item[0], item[1]))[:_KEPT]


def _table_score(
    entry: int, values: NDArray[Any], table: FloatArray, *, mask: int | None = None
) -> Callable[[NDArray[Any]], FloatArray]:
    def score(outputs: NDArray[Any]) -> FloatArray:
        column = outputs[:, entry] if mask is None else outputs[:, entry] & mask
        places = np.minimum(np.searchsorted(values, column), len(values) - 1)
        return np.asarray(np.where(values[places] == column, table[places], 0.0), dtype=np.float64)

    return score


def _last_bit_score(entry: int) -> Callable[[NDArray[Any]], FloatArray]:
    def score(outputs: NDArray[Any]) -> FloatArray:
        return last_bit_exponents(outputs[:, entry])

    return score
