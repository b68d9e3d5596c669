"""What FastLloyd prints (seed 000_823ff705eefdee1c), transcribed. Figures 3 to 7 have no numbers in the text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Overhead:
    """A row of table 3: one iteration with two clients; bytes of all messages of both clients, both ways."""

    data: str
    records: int
    clusters: int
    dimensions: int
    time_ms: float
    interval_ms: float
    bytes_sent: int
    mohassel_ms: float | None = None
    """MohLloyd, as the table reports it."""


def _row(
    data: str,
    records: int,
    clusters: int,
    dimensions: int,
    time_ms: float,
    interval_ms: float,
    bytes_sent: int,
    mohassel_ms: float | None = None,
) -> Overhead:
    """Make a row, in the order of the table's columns."""
    return Overhead(
        data=data,
        records=records,
        clusters=clusters,
        dimensions=dimensions,
        time_ms=time_ms,
        interval_ms=interval_ms,
        bytes_sent=bytes_sent,
        mohassel_ms=mohassel_ms,
    )


TABLE_3 = (
    _row("TimeSynth", 10_000, 2, 2, 3.23, 0.23, 128, 10500),
    _row("TimeSynth", 10_000, 2, 5, 8.61, 1.81, 320),
    _row("TimeSynth", 10_000, 5, 2, 18.02, 3.59, 320, 34050),
    _row("TimeSynth", 10_000, 5, 5, 19.83, 2.01, 800),
    _row("TimeSynth", 100_000, 2, 2, 85.57, 2.42, 128, 105120),
    _row("TimeSynth", 100_000, 2, 5, 313.47, 6.79, 320),
    _row("TimeSynth", 100_000, 5, 2, 423.1, 6.88, 320, 347250),
    _row("TimeSynth", 100_000, 5, 5, 412.89, 5.84, 800),
    _row("LSun", 400, 3, 2, 1.81, 0.1, 192, 1481),
    _row("S1", 5_000, 15, 2, 24.76, 0.3, 960, 49087),
)
"""Section 6.3, lines 445-454 of the seed."""


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A number that the running text states."""

    section: str
    quote: str
    """A piece of the sentence, letter by letter as in the seed."""
    short: str
    """How tables here write it."""


LLOYD_EMPTY = Sentence(section="6.2.1", quote="non-private Lloyd loses around 15% of clusters", short="around 15 %")
SULLOYD_EMPTY = Sentence(
    section="6.2.1", quote="SuLloyd reaching up to more than 40% in high-privacy settings", short="over 40 % at 0.01"
)
FASTLLOYD_EMPTY = Sentence(
    section="6.2.1", quote="FastLloyd eliminates this problem completely for $\\epsilon>0.75$", short="0 above 0.75"
)
SYNTHOV_REDUCTION = Sentence(section="6.2.2", quote="reducing NICV by more than 40%", short="more than 40 %")
SYNTHSEP_BEST = Sentence(
    section="6.2.2", quote="reducing the NICV error by up to 89% in some cases", short="up to 89 %"
)
SYNTHSEP_CORNER = Sentence(section="6.2.2", quote="by more than 78% even in the highest", short="more than 78 %")
DISTANCE_REDUCTION = Sentence(section="7.1", quote="reduction in NICV in small $\\epsilon$", short="30 to 40 %")
SENTENCES = (
    LLOYD_EMPTY,
    SULLOYD_EMPTY,
    FASTLLOYD_EMPTY,
    SYNTHOV_REDUCTION,
    SYNTHSEP_BEST,
    SYNTHSEP_CORNER,
    DISTANCE_REDUCTION,
)
