"""What noise costs without a server, against the number of parties (thesis 7.3, FastLloyd 7.2).

Left and middle: the standard deviation of a released count, exactly, by who adds the noise. Right: the loss of the
sound method on s1 at epsilon 1, measured. Jointly sampled noise is Laplace, so the loss is measured with Laplace noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloister.privacy.placement import Aggregator, Joint, Local, Placement, Shared
from cloister.privacy.units import Budget
from cloister.protocols.fastlloyd.offsets import Offsets
from cloister.protocols.fastlloyd.sound import ROUNDS, SoundSettings, plan_fastlloyd
from cloister.protocols.multiparty_lloyd.noise import NoiseKind
from papers.fastlloyd.datasets import CLUSTERS, FileSet, Scope
from papers.fastlloyd.trials import Cell, Score, Trial, TrialLab, choose_delta
from papers.lab import drawing
from papers.lab.paper import Artefact
from papers.lab.products import Estimate, Product, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTY_COUNTS = (2, 3, 5, 10, 30, 100)
_EPSILON = 1.0
_RECORDS, _DIMENSIONS = 5_000, 2
_NAMES = ("s1",)


@dataclass(frozen=True, kw_only=True)
class _Place:
    """One way to put noise, for any number of parties."""

    key: str
    label: str
    colour: str
    make: Callable[[int], Placement]
    dash: str = "-"
    laplace_only: bool = False


def _share(honest: Callable[[int], int]) -> Callable[[int], Placement]:
    """Shares that suffice if so many are honest; each party knows its own share, so one of them is not."""
    return lambda parties: Shared(parties=parties, colluding_max=max(1, parties - honest(parties)))


PLACES = (
    _Place(key="aggregator", label="server adds it (FastLloyd)", colour=drawing.BLUE, make=lambda _: Aggregator()),
    _Place(
        key="joint",
        label="sampled jointly in secure computation",
        colour=drawing.SKY,
        make=lambda parties: Joint(parties=parties),
        dash=":",
        laplace_only=True,
    ),
    _Place(
        key="shared-all-but-1",
        label="shares, all but one honest",
        colour=drawing.GREEN,
        make=_share(lambda parties: parties),
    ),
    _Place(
        key="shared-2/3",
        label="shares, 2/3 honest",
        colour=drawing.ORANGE,
        make=_share(lambda parties: math.ceil(2 * parties / 3)),
    ),
    _Place(
        key="shared-1/2",
        label="shares, 1/2 honest",
        colour=drawing.PINK,
        make=_share(lambda parties: math.ceil(parties / 2)),
    ),
    _Place(
        key="local", label="local: each adds all of it", colour=drawing.RED, make=lambda parties: Local(parties=parties)
    ),
)


@dataclass(frozen=True, kw_only=True)
class Deviations:
    """Of one release in one round, all noise together."""

    count: float
    """In records."""
    offset_sum: float
    """Of a sum of offsets in the first round, in unit scaling."""


def measure_deviations(place: _Place, parties: int, noise: NoiseKind) -> Deviations:
    """By formula, for s1's shape at epsilon 1: the variance of all noise together (placement.total_variance)."""
    if place.laplace_only and noise == "gaussian":
        return Deviations(count=math.nan, offset_sum=math.nan)
    placement = place.make(parties)
    options = SoundSettings(
        clusters=CLUSTERS["s1"], dimensions=_DIMENSIONS, parties=parties, max_records=_RECORDS, kind=noise, ring_bits=64
    )
    delta = choose_delta(placement, noise == "laplace", _RECORDS)
    plan = plan_fastlloyd(options, Budget(epsilon=_EPSILON, delta=delta), placement=placement)
    assert isinstance(plan.rule, Offsets)
    deviation = placement.total_variance(plan.target_of(1)) ** 0.5
    return Deviations(
        count=deviation / plan.rule.count_weight, offset_sum=deviation * plan.rule.radii[0] / plan.rule.scale
    )


@dataclass(frozen=True, kw_only=True)
class _Point:
    """One placement among this many parties; nan for what does not apply or was not measured."""

    place: _Place
    parties: int
    laplace: Deviations
    gaussian: Deviations
    loss: Estimate


@dataclass(frozen=True, kw_only=True)
class ServerlessFigure(Artefact[Scope, Trial, Score]):
    """Error against the number of parties."""

    name: str = "serverless"
    title: str = "Without a server: error against the number of parties (thesis 7.3, FastLloyd 7.2)"

    def list_trials(self, scope: Scope) -> list[Trial]:
        """The sound method with each placement."""
        return [
            trial
            for data in scope.find_sets(_NAMES)
            for place in PLACES
            for parties in scope.party_counts
            for trial in _list_runs(scope, data, place, parties)
        ]

    def make(self, scope: Scope, lab: TrialLab) -> Product:
        """Three panels; the summary has the largest number of parties beside two."""
        points = [_measure(scope, lab, place, parties) for place in PLACES for parties in PARTY_COUNTS]
        return Product(
            table=Table.of(
                points,
                {
                    "placement": lambda point: point.place.key,
                    "parties": lambda point: point.parties,
                    "laplace_count_sd": lambda point: point.laplace.count,
                    "laplace_offset_sum_sd": lambda point: point.laplace.offset_sum,
                    "gaussian_count_sd": lambda point: point.gaussian.count,
                    "gaussian_offset_sum_sd": lambda point: point.gaussian.offset_sum,
                    "laplace_nicv_s1": lambda point: point.loss.mean,
                    "laplace_nicv_s1_ci95": lambda point: point.loss.half_width,
                },
            ),
            summary=Table.of(
                [point for point in points if point.parties in (PARTY_COUNTS[0], 10, PARTY_COUNTS[-1])],
                {
                    "who adds noise": lambda point: point.place.label,
                    "parties": lambda point: point.parties,
                    "sd of a count, Laplace": lambda point: point.laplace.count,
                    "Gaussian": lambda point: point.gaussian.count,
                    "NICV of s1": lambda point: point.loss.mean,
                },
            ),
            notes=(
                f"s1's shape (k = 15, d = 2) at epsilon 1 and {ROUNDS} rounds; Gaussian: delta = 1/(n ln n). NICV with "
                f"Laplace noise, {scope.runs} runs. The papers discuss this without numbers.",
                *scope.explain_missing(_NAMES),
            ),
            picture=_draw(scope, points),
        )


def _list_runs(scope: Scope, data: FileSet, place: _Place, parties: int) -> list[Trial]:
    return [
        Trial(
            data=data,
            method="sound",
            run=run,
            epsilon=_EPSILON,
            noise="laplace",
            placement=place.make(parties),
            parties=parties,
        )
        for run in range(scope.runs)
    ]


def _measure(scope: Scope, lab: TrialLab, place: _Place, parties: int) -> _Point:
    sets = scope.find_sets(_NAMES) if parties in scope.party_counts else ()
    losses = [Cell.of(lab.scores(_list_runs(scope, data, place, parties))).loss for data in sets]
    return _Point(
        place=place,
        parties=parties,
        laplace=measure_deviations(place, parties, "laplace"),
        gaussian=measure_deviations(place, parties, "gaussian"),
        loss=losses[0] if losses else Estimate.of([]),
    )


def _draw(scope: Scope, points: Sequence[_Point]) -> bytes:
    sets = scope.find_sets(_NAMES)
    figure = drawing.make_figure(4.2 * (2 + len(sets)), 4.6)
    panels = figure.subplots(1, 2 + len(sets))
    for place in PLACES:
        own = [point for point in points if point.place == place]
        curves = (
            [(point.parties, Estimate.exact(point.laplace.count)) for point in own],
            [(point.parties, Estimate.exact(point.gaussian.count)) for point in own],
            [(point.parties, point.loss) for point in own],
        )
        for axes, curve in zip(panels, curves, strict=False):
            known = [(parties, drawn) for parties, drawn in curve if math.isfinite(drawn.mean)]
            drawing.draw_line(
                axes,
                [parties for parties, _ in known],
                [drawn.mean for _, drawn in known],
                [drawn.half_width for _, drawn in known],
                label=place.label,
                color=place.colour,
                linestyle=place.dash,
            )
    titles = ["Standard deviation of a count, Laplace", "Standard deviation of a count, Gaussian"]
    titles += [f"NICV of {data.label}, Laplace, {scope.runs} runs" for data in sets]
    for axes, title, unit in zip(panels, titles, ("records", "records", "NICV"), strict=False):
        drawing.tidy_axes(axes, title=title, x="parties", y=unit)
        _set_ticks(axes)
    head = "Who adds the noise, at epsilon 1 for all: error against the number of parties"
    return drawing.finish_figure(figure, head, legend_columns=3)


def _set_ticks(axes: Axes) -> None:
    """Logarithmic both ways, with the numbers of parties and plain numbers."""
    from matplotlib.ticker import NullLocator  # noqa: PLC0415 (optional)

    axes.set_xscale("log")
    drawing.set_loss_ticks(axes)
    axes.set_xticks(PARTY_COUNTS, [str(parties) for parties in PARTY_COUNTS])
    axes.xaxis.set_minor_locator(NullLocator())
