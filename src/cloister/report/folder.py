"""A result on disk: one folder with result.json, centres.npz (for NumPy), centres.csv (for people) and job.toml.

job.toml is the job's public part: what was agreed. Labels that a job grants are separate files beside them, each for
its party only (:mod:`.labels`).

The folder appears whole or not at all: it is written beside its final place and renamed. An earlier result is
replaced only when asked for, and only if the folder holds nothing else. Reading trusts nothing: sizes are limited,
nothing is unpickled, and result.json and centres.npz must agree; other files are not read.
"""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.columns import column_highs, column_lows
from cloister.errors import ConfigError, require_kind
from cloister.privacy.ledger.schema import sync_folder
from cloister.report.centres import encode_table
from cloister.report.labels import PartyLabels, is_labels_file, write_labels
from cloister.report.result import Result, decode_result, encode_result

RESULT_FILE, CENTRES_FILE, PICTURE_FILE, SESSION_FILE = "result.json", "centres.npz", "picture.png", "session.json"
TABLE_FILE, JOB_FILE, REPORT_FILE, PRINTED_FILE = "centres.csv", "job.toml", "report.html", "report.pdf"
CLIENTS_FILE = "clients.csv"
"""How the part of each hosted client ended. Errors in it are about tables, so only the host reads it."""
MAX_FILE_BYTES = 2**30
_OWN_FILES = frozenset(
    {
        RESULT_FILE,
        CENTRES_FILE,
        TABLE_FILE,
        JOB_FILE,
        PICTURE_FILE,
        REPORT_FILE,
        PRINTED_FILE,
        SESSION_FILE,
        CLIENTS_FILE,
    }
)
_PRIVATE_MODE = 0o600
Sign = Callable[[Mapping[str, bytes]], bytes]
"""Takes the files of a result, by name, and returns what stands in session.json."""


def check_destination(folder: str | Path, *, overwrite: bool = False) -> None:
    """Refuse a folder that a result cannot be written to; called before a run, so that no result is lost.

    Its parents are created, and writing there is tried.

    Parameters
    ----------
    folder
        May be missing or empty. With ``overwrite`` it may hold an earlier result, and nothing else.
    """
    require_kind("the result folder", folder, str, Path)
    folder = Path(folder).resolve()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent):
            pass  # what can be created there now can usually be created after the run
    except OSError as error:
        raise _describe_refusal(folder, error) from None
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ConfigError(f"the result must go to a folder; got the file {folder}. Choose another name.")
    try:
        found = {entry.name for entry in folder.iterdir()}
    except OSError as error:
        raise _describe_refusal(folder, error) from None
    others = sorted(name for name in found - _OWN_FILES if not is_labels_file(name))
    if others or (found and RESULT_FILE not in found):
        shown = ", ".join((others or sorted(found))[:3])
        raise ConfigError(
            f"the result must go to a new or empty folder; got {folder}, which holds other files ({shown}). "
            "Choose another folder; Cloister deletes nothing that it did not write."
        )
    if found and not overwrite:
        raise ConfigError(
            f"the result must go to a new or empty folder; got {folder}, which holds an earlier result. "
            "Choose another folder, or replace it with --overwrite (overwrite=True)."
        )


def write_result(
    result: Result,
    folder: str | Path,
    *,
    overwrite: bool = False,
    contract: str | None = None,
    picture: bytes | None = None,
    labels: Sequence[PartyLabels] = (),
    sign: Sign | None = None,
    clients: bytes | None = None,
) -> Path:
    """Write a result folder, whole or not at all; it is on the disk when this returns.

    Parameters
    ----------
    result
        What a run returned.
    folder
        Its parents are created.
    overwrite
        Replace an earlier result there.
    contract
        The job's public part, for job.toml (`cloister.jobfile.contract`).
    picture
        PNG bytes for picture.png.
    labels
        The labels of each party that is granted them: labels-PARTY.csv, readable by its owner only.
    sign
        Makes the record of a session between organisations, readable by its owner only.
    clients
        The content of clients.csv, readable by its owner only.

    Returns
    -------
    Path
        The folder, absolute.

    Raises
    ------
    ConfigError
        If the folder may not be replaced or cannot be written.
    """
    require_kind("the result", result, Result)
    check_destination(folder, overwrite=overwrite)
    folder = Path(folder).resolve()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as workshop:
            fresh, earlier = Path(workshop, "fresh"), Path(workshop, "earlier")
            fresh.mkdir()
            files = {
                RESULT_FILE: encode_result(result),
                CENTRES_FILE: _encode_arrays(result),
                TABLE_FILE: encode_table(result),
            }
            if contract is not None:
                files[JOB_FILE] = contract.encode()
            for name, content in files.items():
                (fresh / name).write_bytes(content)
            private = {SESSION_FILE: None if sign is None else sign(files), CLIENTS_FILE: clients}
            for name, kept in private.items():
                if kept is not None:
                    (fresh / name).touch(mode=_PRIVATE_MODE)
                    (fresh / name).write_bytes(kept)
            if picture is not None:
                (fresh / PICTURE_FILE).write_bytes(picture)
            for own in labels:
                write_labels(own, fresh)
            for path in fresh.iterdir():
                _sync_file(path)
            sync_folder(fresh)
            _swap_in(fresh, folder, earlier)
            sync_folder(folder.parent)
    except OSError as error:
        raise _describe_refusal(folder, error) from None
    return folder


def add_picture(folder: str | Path, picture: bytes) -> None:
    """Put a picture into a result folder."""
    path = Path(folder).resolve() / PICTURE_FILE
    try:
        path.write_bytes(picture)
    except OSError as error:
        raise _describe_refusal(path.parent, error) from None


def _describe_refusal(folder: Path, error: OSError) -> ConfigError:
    """Return the error for a folder that cannot be written."""
    reason = error.strerror or type(error).__name__
    return ConfigError(f"the result folder must be writable; got {folder}: {reason}. Choose another folder.")


def _sync_file(path: Path) -> None:
    """Put what was written on the disk: journals that could give it again are wiped after this."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _swap_in(fresh: Path, folder: Path, earlier: Path) -> None:
    """Rename the new folder into place; if that fails, put the earlier one back."""
    if not folder.exists():
        fresh.rename(folder)
        return
    try:
        folder.rename(earlier)
        fresh.rename(folder)
    except BaseException:
        if earlier.exists() and not folder.exists():
            earlier.rename(folder)
        raise


def _encode_arrays(result: Result) -> bytes:
    """Return centres.npz."""
    out = io.BytesIO()
    arrays = _list_arrays(result)
    np.savez(out, centres=arrays["centres"], columns=arrays["columns"], low=arrays["low"], high=arrays["high"])
    return out.getvalue()


def _list_arrays(result: Result) -> dict[str, NDArray[Any]]:
    """Return what centres.npz holds: the centres in original units, and the columns' names and bounds."""
    return {
        "centres": result.centres,
        "columns": np.array([axis.name for axis in result.coordinates]),
        "low": column_lows(result.coordinates),
        "high": column_highs(result.coordinates),
    }


def read_result(folder: str | Path) -> Result:
    """Read a result folder back.

    Raises
    ------
    ConfigError
        If a file is missing, damaged, from a newer Cloister, or the two do not agree.
    """
    require_kind("the result folder", folder, str, Path)
    folder = Path(folder)
    if not folder.is_dir():
        raise ConfigError(f"a result must be a folder with {RESULT_FILE}; got {folder}. Name the folder of a run.")
    path = folder / RESULT_FILE
    result = decode_result(_read_limited(path), path)
    _check_agreement(folder / CENTRES_FILE, result)
    return result


def _read_limited(path: Path) -> bytes:
    """Read a file that must exist and not be absurdly large."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"a result folder must hold a readable {path.name}; got {path.parent}, which does not: "
            f"{error.strerror or type(error).__name__}. Use a complete result folder."
        ) from None
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError(f"{path} must have at most {MAX_FILE_BYTES} bytes; it has more. Use an unchanged copy.")
    return raw


def _check_agreement(path: Path, result: Result) -> None:
    """Refuse a folder whose two files disagree."""
    arrays, expected = load_arrays(path), _list_arrays(result)
    wrong = sorted(arrays.keys() ^ expected.keys())
    wrong += [name for name in arrays.keys() & expected.keys() if not np.array_equal(arrays[name], expected[name])]
    if wrong:
        names = ", ".join(wrong)
        raise ConfigError(f"{RESULT_FILE} and {path} must agree; got a difference in {names}. Use an unchanged copy.")


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Load an npz file without unpickling, after checking the sizes it would unpack to."""
    raw = _read_limited(path)
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            unpacked_bytes = sum(entry.file_size for entry in archive.infolist())
        if unpacked_bytes > MAX_FILE_BYTES:
            raise ValueError("it unpacks to too many bytes")
        with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except Exception as error:  # zipfile, zlib and NumPy raise a dozen types for damaged bytes
        raise ConfigError(
            f"{path} must be an unchanged NumPy archive; it cannot be read ({type(error).__name__}). "
            "Use an unchanged copy of the folder."
        ) from None
