"""Embedded demonstration data: three clinics whose patients fall into four segments.

The records are synthetic and come from :func:`generate_clinics`; a test compares the committed files with its
output, byte for byte. To regenerate them: ``python -c "from cloister.data.samples import *;
write_clinics(sample_folder())"``.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from cloister.crypto import Stream
from cloister.errors import ConfigError

__all__ = ["generate_clinics", "sample_folder", "write_clinics"]

_SEED = 20240
_HEADER = "age,systolic_bp,bmi,hba1c"
_DECIMALS = (0, 0, 1, 1)
_LOWEST = np.array([18.0, 85.0, 15.0, 4.2])  # draws beyond what a clinic would record are clipped
_HIGHEST = np.array([94.0, 215.0, 58.0, 13.9])


@dataclass(frozen=True, kw_only=True)
class _Segment:
    """A kind of patient: means and standard deviations in the order of the header."""

    mean: tuple[float, float, float, float]
    deviation: tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class _Clinic:
    """A clinic: its size and its share of each segment."""

    name: str
    records: int
    shares: tuple[float, float, float, float]


_SEGMENTS = (
    _Segment(mean=(33.0, 116.0, 23.5, 5.2), deviation=(6.0, 8.0, 2.2, 0.25)),  # young, in for a check-up
    _Segment(mean=(72.0, 160.0, 26.5, 5.8), deviation=(6.5, 10.0, 2.6, 0.35)),  # old, high blood pressure
    _Segment(mean=(57.0, 139.0, 36.0, 8.8), deviation=(6.5, 9.0, 3.2, 0.7)),  # middle-aged, type 2 diabetes
    _Segment(mean=(29.0, 120.0, 23.0, 10.4), deviation=(5.0, 8.0, 2.2, 0.8)),  # young, type 1 diabetes off target
)
_CLINICS = (
    _Clinic(name="north", records=5000, shares=(0.46, 0.22, 0.24, 0.08)),
    _Clinic(name="harbour", records=3500, shares=(0.14, 0.52, 0.28, 0.06)),
    _Clinic(name="valley", records=2500, shares=(0.26, 0.16, 0.18, 0.40)),
)


def sample_folder(name: str = "clinics") -> Path:
    """Return the folder of an embedded sample: its ``job.toml`` and one table for each party.

    Parameters
    ----------
    name
        ``"clinics"``.
    """
    if name not in ("clinics",):
        raise ConfigError(f"an embedded sample must be 'clinics'; got {name!r}. Use sample_folder('clinics').")
    folder = files(__name__) / name
    with as_file(folder) as path:  # the package is installed as plain files, so the path remains valid
        return path


def generate_clinics() -> dict[str, str]:
    """Return the CSV text of each clinic, by file name; the same on every call."""
    return {f"{clinic.name}.csv": _generate_clinic(clinic) for clinic in _CLINICS}


def write_clinics(folder: Path) -> None:
    """Write the clinics' tables into a folder."""
    for name, text in generate_clinics().items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def _generate_clinic(clinic: _Clinic) -> str:
    """Draw patients: a segment by the clinic's shares, then a normal vector, rounded as in a real record."""
    stream = Stream.from_seed(_SEED, "clinics", clinic.name)
    segments = np.searchsorted(np.cumsum(clinic.shares)[:-1], stream.uniform(clinic.records), side="right")
    mean = np.array([segment.mean for segment in _SEGMENTS])[segments]
    deviation = np.array([segment.deviation for segment in _SEGMENTS])[segments]
    values = np.clip(mean + deviation * stream.normal(clinic.records, 4), _LOWEST, _HIGHEST)
    lines = [
        ",".join(f"{value:.{decimals}f}" for value, decimals in zip(row, _DECIMALS, strict=True)) for row in values
    ]
    return "\n".join([_HEADER, *lines, ""])
