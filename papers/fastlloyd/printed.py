"""What the texts print, transcribed.

FastLloyd: Abdulrahman Diaa, Thomas Humphries and Florian Kerschbaum, "FastLloyd: Federated, Accurate, Secure, and
Tunable k-Means Clustering with Differential Privacy", 2024. Figures 3 to 7 have no numbers in the text.

The thesis: Abdelrahman Ahmed, "Differentially-Private Multiparty Clustering", University of Waterloo, 2023, chapter 8.
Its losses are WCSS, not over N.
"""

from __future__ import annotations

from dataclasses import dataclass

from cloister.protocols.fastlloyd.published_rules import Correction


@dataclass(frozen=True, kw_only=True)
class Overhead:
    """A row of FastLloyd's table 3: one iteration; bytes of all messages of both clients, both ways."""

    data: str
    records: int
    clusters: int
    dimensions: int
    time_ms: float
    interval_ms: float
    bytes_sent: int
    mohassel_ms: float | None = None
    """MohLloyd, as the table reports it."""


TABLE_3 = tuple(
    Overhead(
        data=data,
        records=records,
        clusters=clusters,
        dimensions=dimensions,
        time_ms=time_ms,
        interval_ms=interval_ms,
        bytes_sent=bytes_sent,
        mohassel_ms=mohassel_ms,
    )
    for data, records, clusters, dimensions, time_ms, interval_ms, bytes_sent, mohassel_ms in (
        ("TimeSynth", 10_000, 2, 2, 3.23, 0.23, 128, 10500),
        ("TimeSynth", 10_000, 2, 5, 8.61, 1.81, 320, None),
        ("TimeSynth", 10_000, 5, 2, 18.02, 3.59, 320, 34050),
        ("TimeSynth", 10_000, 5, 5, 19.83, 2.01, 800, None),
        ("TimeSynth", 100_000, 2, 2, 85.57, 2.42, 128, 105120),
        ("TimeSynth", 100_000, 2, 5, 313.47, 6.79, 320, None),
        ("TimeSynth", 100_000, 5, 2, 423.1, 6.88, 320, 347250),
        ("TimeSynth", 100_000, 5, 5, 412.89, 5.84, 800, None),
        ("LSun", 400, 3, 2, 1.81, 0.1, 192, 1481),
        ("S1", 5_000, 15, 2, 24.76, 0.3, 960, 49087),
    )
)
"""FastLloyd 6.3."""


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A number that FastLloyd's running text states."""

    section: str
    quote: str
    """A piece of the sentence, letter by letter."""
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

EPSILON = 4.0
"""The default budget (table 7.1), of tables 8.2 to 8.7."""
SETS = ("s1", "house", "iris", "image", "adult", "birch2")
"""The columns of tables 8.2 to 8.5, in their order. The set "image" is not available."""
RECORDS = {"s1": 5_000, "house": 1_837, "iris": 150, "image": 34_112, "adult": 48_842, "birch2": 25_000}
"""Table 8.1."""


@dataclass(frozen=True, kw_only=True)
class LossRow:
    """A row of an ablation: mean WCSS on each of :data:`SETS`."""

    losses: tuple[float, float, float, float, float, float]
    best_count: int
    total: float | None = None
    """TNW, where the table has it: WCSS / N, by the text its sum over the sets; what is printed is its mean."""

    def find(self, name: str) -> float:
        """The loss on one set."""
        return self.losses[SETS.index(name)]


Corrections = tuple[Correction, Correction, Correction]
"""What is done with sums, counts and centres."""

TABLE_8_2: dict[Corrections, LossRow] = {
    ("none", "none", "fold"): LossRow(losses=(82.8, 286.3, 33.7, 3559.5, 12295.4, 45.7), best_count=3),
    ("fold", "none", "fold"): LossRow(losses=(83.0, 287.1, 33.9, 3559.4, 12294.6, 482.5), best_count=2),
    ("none", "none", "truncate"): LossRow(losses=(82.8, 288.6, 33.3, 3559.8, 12295.2, 45.3), best_count=2),
    ("truncate", "fold", "truncate"): LossRow(losses=(103.2, 288.1, 32.8, 3559.6, 12294.8, 181.3), best_count=2),
    ("fold", "fold", "truncate"): LossRow(losses=(104.4, 286.4, 33.1, 3559.5, 12295.0, 175.7), best_count=1),
    ("fold", "none", "none"): LossRow(losses=(82.9, 286.3, 33.1, 3559.6, 12295.3, 475.4), best_count=1),
    ("fold", "none", "truncate"): LossRow(losses=(83.0, 287.9, 32.9, 3559.7, 12295.2, 477.7), best_count=1),
    ("none", "fold", "fold"): LossRow(losses=(102.8, 291.0, 34.7, 3559.6, 12294.9, 325.0), best_count=1),
    ("none", "fold", "truncate"): LossRow(losses=(102.8, 289.2, 32.9, 3559.7, 12295.1, 179.7), best_count=1),
    ("none", "none", "none"): LossRow(losses=(83.2, 294.8, 33.0, 3559.6, 12295.5, 45.5), best_count=1),
    ("truncate", "fold", "none"): LossRow(losses=(112.6, 289.8, 33.0, 3559.4, 12295.3, 174.6), best_count=1),
    ("truncate", "none", "none"): LossRow(losses=(82.9, 288.1, 33.2, 3559.4, 12295.5, 298.7), best_count=1),
    ("truncate", "none", "truncate"): LossRow(losses=(82.8, 287.0, 33.5, 3559.5, 12295.3, 295.9), best_count=1),
}
"""NMA: the 13 of 27 that were among the best three on some set."""

TABLE_8_3: dict[Correction, LossRow] = {
    "fold": LossRow(losses=(81.7, 284.4, 32.1, 3560.2, 12296.8, 42.0), best_count=3),
    "truncate": LossRow(losses=(81.6, 284.6, 32.5, 3560.0, 12296.8, 42.1), best_count=2),
    "none": LossRow(losses=(81.7, 284.7, 32.7, 3560.0, 12296.7, 42.3), best_count=1),
}
"""AMN."""

TABLE_8_4: dict[str, LossRow] = {
    "sphere-packing": LossRow(losses=(83.2, 294.8, 32.8, 3558.8, 12178.3, 47.0), best_count=3, total=0.12522),
    "random": LossRow(losses=(117.3, 285.0, 36.7, 3558.8, 12145.4, 96.7), best_count=3, total=0.13002),
}
"""NMA."""

TABLE_8_5: dict[str, LossRow] = {
    "sphere-packing": LossRow(losses=(81.7, 284.7, 32.4, 3558.9, 12180.1, 43.5), best_count=3, total=0.12379),
    "random": LossRow(losses=(115.6, 283.8, 33.3, 3557.9, 12145.7, 92.8), best_count=3, total=0.12605),
}
"""AMN."""


@dataclass(frozen=True, kw_only=True)
class TimeRow:
    """Milliseconds an iteration, with the half-widths that are printed."""

    lan_ms: float
    lan_interval_ms: float
    wan_ms: float
    wan_interval_ms: float


def _make_rows(**printed: tuple[float, float, float, float]) -> dict[str, TimeRow]:
    return {
        data: TimeRow(lan_ms=lan, lan_interval_ms=lan_interval, wan_ms=wan, wan_interval_ms=wan_interval)
        for data, (lan, lan_interval, wan, wan_interval) in printed.items()
    }


TABLE_8_6 = _make_rows(
    iris=(60, 16, 155, 15),
    image=(75, 8, 197, 6),
    house=(46, 8, 148, 9),
    adult=(263, 10, 389, 7),
    birch2=(1029, 11, 1126, 9),
    s1=(33, 6, 141, 3),
    synth=(9, 2, 122, 1),
)
"""NMA."""

TABLE_8_7 = _make_rows(
    iris=(68, 15, 143, 14),
    image=(71, 9, 197, 5),
    house=(42, 5, 150, 5),
    adult=(259, 8, 387, 8),
    birch2=(1045, 23, 1135, 17),
    s1=(31, 4, 140, 2),
    synth=(7, 1, 123, 1),
)
"""AMN."""

EMPTY_ON_BIRCH2 = {
    ("nma", "unconstrained", False): "about 15",
    ("amn", "unconstrained", False): "about 20",
    ("nma", "constrained", False): "0",
    ("amn", "constrained", False): "0",
    ("nma", "unconstrained", True): "about 10",
    ("amn", "unconstrained", True): "22 to 25",
    ("nma", "constrained", True): "4 at 1, then 1",
    ("amn", "constrained", True): "2 at 1, then fewer",
}
"""Section 8.5.3: clusters of 100 that are empty, by protocol, assignment and whether there is noise."""
