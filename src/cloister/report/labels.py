"""The labels of one party's own records, as a CSV file that its owner alone may read.

They are no part of a result: a result may be shown to every party, and labels are as private as the records.
"""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cloister.errors import ConfigError
from cloister.records import IntArray

_PREFIX, _SUFFIX = "labels-", ".csv"
_OWNER_ONLY = 0o600


@dataclass(frozen=True, kw_only=True, eq=False)
class PartyLabels:
    """What one party is handed.

    Attributes
    ----------
    party
        Its name.
    key_name
        What the first column is called: the job's column of IDs, or "row".
    keys
        The ID of each record as the party's table has it, or the number of its row, from 1; in the order of the table.
    labels
        For each the cluster: a row of the result's centres, from 0.
    """

    party: str
    key_name: str
    keys: Sequence[object] = field(repr=False)
    labels: IntArray = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.keys) != len(self.labels):
            raise ConfigError(f"labels must come with a key each; got {len(self.labels)} with {len(self.keys)} keys.")

    @property
    def file_name(self) -> str:
        """What their file is called."""
        return _name_file(self.party)


def is_labels_file(name: str) -> bool:
    """Say whether a file of a result folder is one of labels."""
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def check_label_folder(folder: Path, parties: Sequence[str], *, overwrite: bool) -> None:
    """Refuse a folder that labels cannot be written to; called before a session, so that none is run in vain.

    Raises
    ------
    ConfigError
        If it is a file or cannot be written to, or holds such labels already and these may not be replaced.
    """
    folder = folder.resolve()
    there = [name for name in map(_name_file, parties) if (folder / name).exists()]
    if there and not overwrite:
        raise ConfigError(
            f"labels must go to a new file; got {folder / there[0]}, which exists. Choose another folder, or replace "
            "it with --overwrite (overwrite=True)."
        )
    existed = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".labels-", dir=folder):
            pass  # what can be made there now can, as a rule, be made after the session
        if not existed:
            folder.rmdir()  # nothing is left behind by a session that is refused
    except OSError as error:
        raise _describe_refusal(folder, error) from None


def write_label_folder(labels: Sequence[PartyLabels], folder: Path, *, overwrite: bool) -> list[Path]:
    """Write each party's labels into a folder; a file appears whole or not at all. Returns their paths.

    Raises
    ------
    ConfigError
        As :func:`check_label_folder`.
    """
    folder = folder.resolve()
    check_label_folder(folder, [own.party for own in labels], overwrite=overwrite)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".labels-", dir=folder) as workshop:
            return [write_labels(own, Path(workshop)).replace(folder / own.file_name) for own in labels]
    except OSError as error:
        raise _describe_refusal(folder, error) from None


def _describe_refusal(folder: Path, error: OSError) -> ConfigError:
    reason = error.strerror or type(error).__name__
    return ConfigError(f"labels must go to a folder that can be written to; got {folder}: {reason}. Choose another.")


def _name_file(party: str) -> str:
    return f"{_PREFIX}{party}{_SUFFIX}"


def write_labels(labels: PartyLabels, folder: Path) -> Path:
    """Write labels-PARTY.csv, mode 0600 from its first byte on.

    Raises
    ------
    OSError
        If the file is there already, or the disk refuses.
    """
    path = folder / labels.file_name
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), "w", encoding="utf-8", newline=""
    ) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([labels.key_name, "label"])
        writer.writerows(zip(labels.keys, labels.labels.tolist(), strict=True))
    return path
