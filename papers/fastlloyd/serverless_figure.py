"""What noise costs without a server, against the number of parties (thesis 7.3, FastLloyd 7.2).

Left and middle: the standard deviation of a released count, exactly, by who adds the noise. Right: the loss of the
sound method on s1 at epsilon 1, measured. Jointly sampled noise is Laplace, so the loss is measured with Laplace noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cloister.privacy.placement import Aggregator, Joint, Local, Placement, Shared
from cloister.privacy.units import Budget
from cloister.protocols.fastlloyd import ROUNDS, FastLloydOptions, plan_fastlloyd
from cloister.protocols.fastlloyd.offsets import Offsets
from cloister.protocols.multiparty_lloyd.noise import NoiseKind
from papers.fastlloyd.datasets import CLUSTERS, FileSet
from papers.fastlloyd.drawing import (
    BLUE,
    GREEN,
    ORANGE,
    PINK,
    RED,
    SKY,
    draw_line,
    make_figure,
    save_figure,
    set_loss_ticks,
    tidy_axes,
)
from papers.fastlloyd.lab import Lab
from papers.fastlloyd.products import Product, Table, Value
from papers.fastlloyd.scope import Scope
from papers.fastlloyd.trials import Trial, choose_delta

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
    """Shares that suffice if so many are honest; each party knows its own share of what it receives, so one is not."""
    return lambda parties: Shared(parties=parties, colluding_max=max(1, parties - honest(parties)))


PLACES = (
    _Place(key="aggregator", label="server adds it (FastLloyd)", colour=BLUE, make=lambda _: Aggregator()),
    _Place(
        key="joint",
        label="sampled jointly in secure computation",
        colour=SKY,
        make=lambda parties: Joint(parties=parties),
        dash=":",
        laplace_only=True,
    ),
    _Place(
        key="shared-all-but-1",
        label="shares, all but one honest",
        colour=GREEN,
        make=_share(lambda parties: parties),
    ),
    _Place(
        key="shared-2/3",
        label="shares, 2/3 honest",
        colour=ORANGE,
        make=_share(lambda parties: math.ceil(2 * parties / 3)),
    ),
    _Place(
        key="shared-1/2", label="shares, 1/2 honest", colour=PINK, make=_share(lambda parties: math.ceil(parties / 2))
    ),
    _Place(key="local", label="local: each adds all of it", colour=RED, make=lambda parties: Local(parties=parties)),
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
    placement = place.make(parties)
    options = FastLloydOptions(
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
class ServerlessFigure:
    """Error against the number of parties."""

    name: ClassVar[str] = "serverless"
    title: ClassVar[str] = "Without a server: error against the number of parties (thesis 7.3, FastLloyd 7.2)"

    def _list_point(self, scope: Scope, data: FileSet, place: _Place, parties: int) -> list[Trial]:
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

    def list_trials(self, scope: Scope) -> list[Trial]:
        """The sound method with each placement."""
        return [
            trial
            for data in scope.find_sets(_NAMES)
            for place in PLACES
            for parties in scope.party_counts
            for trial in self._list_point(scope, data, place, parties)
        ]

    def count_sessions(self, scope: Scope) -> int:
        """None."""
        return 0

    def make(self, scope: Scope, lab: Lab) -> Product:
        """Three panels; the summary has the largest number of parties beside two."""
        rows: list[tuple[Value, ...]] = []
        summary: list[tuple[Value, ...]] = []
        sets = scope.find_sets(_NAMES)
        for place in PLACES:
            for parties in PARTY_COUNTS:
                laplace = measure_deviations(place, parties, "laplace")
                gaussian = None if place.laplace_only else measure_deviations(place, parties, "gaussian")
                loss = width = None
                if sets and parties in scope.party_counts:
                    cell = lab.cell(self._list_point(scope, sets[0], place, parties))
                    loss, width = cell.loss.mean, cell.loss.half_width
                rows.append(
                    (
                        place.key,
                        parties,
                        laplace.count,
                        laplace.offset_sum,
                        None if gaussian is None else gaussian.count,
                        None if gaussian is None else gaussian.offset_sum,
                        loss,
                        width,
                    )
                )
                if parties in (PARTY_COUNTS[0], 10, PARTY_COUNTS[-1]):
                    summary.append(
                        (place.label, parties, laplace.count, None if gaussian is None else gaussian.count, loss)
                    )
        return Product(
            table=Table(columns=_COLUMNS, rows=tuple(rows)),
            summary=Table(
                columns=("who adds noise", "parties", "sd of a count, Laplace", "Gaussian", "NICV of s1"),
                rows=tuple(summary),
            ),
            notes=(
                f"s1's shape (k = 15, d = 2) at epsilon 1 and {ROUNDS} rounds; Gaussian: delta = 1/(n ln n). NICV with "
                f"Laplace noise, {scope.runs} runs. The papers discuss this without numbers.",
                *scope.explain_missing(_NAMES),
            ),
            picture=self._draw(scope, lab),
        )

    def _draw(self, scope: Scope, lab: Lab) -> bytes:
        sets = scope.find_sets(_NAMES)
        figure = make_figure(4.2 * (2 + len(sets)), 4.6)
        panels = figure.subplots(1, 2 + len(sets))
        _draw_deviations(panels[0], "laplace")
        _draw_deviations(panels[1], "gaussian")
        for axes, data in zip(panels[2:], sets, strict=True):
            for place in PLACES:
                cells = [lab.cell(self._list_point(scope, data, place, parties)) for parties in scope.party_counts]
                means, widths = [cell.loss.mean for cell in cells], [cell.loss.half_width for cell in cells]
                draw_line(
                    axes, scope.party_counts, means, widths, label=place.label, color=place.colour, linestyle=place.dash
                )
            tidy_axes(axes, title=f"NICV of {data.label}, Laplace, {scope.runs} runs", x="parties", y="NICV")
            _set_ticks(axes)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8.5, frameon=False)
        figure.suptitle("Who adds the noise, at epsilon 1 for all: error against the number of parties", fontsize=10)
        return save_figure(figure)


def _draw_deviations(axes: Axes, noise: NoiseKind) -> None:
    for place in PLACES:
        if place.laplace_only and noise == "gaussian":
            continue
        values = [measure_deviations(place, parties, noise).count for parties in PARTY_COUNTS]
        style = {"color": place.colour, "linestyle": place.dash, "label": place.label}
        axes.plot(PARTY_COUNTS, values, marker="o", markersize=3.2, linewidth=1.6, **style)  # type: ignore[arg-type]
    tidy_axes(axes, title=f"Standard deviation of a count, {noise.title()}", x="parties", y="records")
    _set_ticks(axes)


def _set_ticks(axes: Axes) -> None:
    """Logarithmic both ways, with the numbers of parties and plain numbers."""
    from matplotlib.ticker import NullLocator  # noqa: PLC0415 (optional)

    axes.set_xscale("log")
    set_loss_ticks(axes)
    axes.set_xticks(PARTY_COUNTS, [str(parties) for parties in PARTY_COUNTS])
    axes.xaxis.set_minor_locator(NullLocator())


_COLUMNS = (
    "placement",
    "parties",
    "laplace_count_sd",
    "laplace_offset_sum_sd",
    "gaussian_count_sd",
    "gaussian_offset_sum_sd",
    "laplace_nicv_s1",
    "laplace_nicv_s1_ci95",
)
