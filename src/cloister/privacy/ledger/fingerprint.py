"""Recognising a data set again: a salted hash of its records that ignores their order.

Each record is hashed on its own with keyed BLAKE2b-256, the hashes are added modulo 2^256, and the sum is hashed again
with the number of records and columns (a keyed multiset hash: Clarke et al. 2003, MSet-Add-Hash). Addition, because XOR
would cancel a record that stands twice: a table and the same table with two equal rows more would look the same.

The key is the ledger's salt, which never leaves its file. Without it, a fingerprint says nothing about the records, not
even to someone who can list every possible table; and two parties' fingerprints of one table differ.

What is hashed are the numbers of the batches, in their columns' order; a job hashes original units, before records are
clipped and rounded. So a data set is recognised after its rows were shuffled, split into other batches or read from
another file format, after its columns were renamed, and under other bounds. It is **not** recognised after a record was
added, changed or removed, or with other columns or column order. An owner whose table changes, or who joins jobs that
others write, should name the data set (``dataset`` in the job, :func:`fingerprint_label`): then all jobs on it meet one
cap.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from cloister.errors import ConfigError, DataError
from cloister.records import FloatArray

FINGERPRINT_DIGITS = 64  # hexadecimal: 256 bits
_SALT_BYTES_MIN = 16


def fingerprint_records(batches: Iterable[FloatArray], *, salt: bytes, columns: int | None = None) -> str:
    """Hash the content of a table, whatever the order of its records.

    Parameters
    ----------
    batches
        (n_b, d) arrays: a party's records in original units (``table.raw_batches()``). Read once, one at a time.
    salt
        The ledger's (:attr:`~cloister.privacy.ledger.Ledger.salt`): at least 16 secret random bytes.
    columns
        d, which is public. A private job must give it: then a table without records has a fingerprint, too, and no
        refusal tells that it is empty. By default the first batch says.

    Returns
    -------
    str
        64 hexadecimal digits.

    Privacy
    -------
    Releases nothing: the fingerprint stays in the ledger of the records' owner. In an exported ledger it is the output
    of a keyed hash whose key is not exported.
    """
    keyed = _keyed(salt, b"record")
    total = 0
    count = 0
    for batch in batches:
        columns = batch.shape[1] if columns is None else columns
        if batch.shape[1] != columns:
            raise DataError(f"all batches must have {columns} columns; got {batch.shape[1]}. Read one table.")
        if not len(batch):
            continue  # a view without bytes cannot be cast
        # Adding 0.0 turns -0.0, which equals 0.0 but has other bytes, into 0.0. Little-endian on every machine.
        content = np.ascontiguousarray(batch + 0.0, dtype="<f8").data.cast("B")
        step = 8 * columns
        for start in range(0, len(content), step):
            record = keyed.copy()
            record.update(content[start : start + step])
            total += int.from_bytes(record.digest(), "little")
        count += len(batch)
    if columns is None:
        raise DataError("a data set without records must come with its number of columns; got neither. Give columns.")
    table = _keyed(salt, b"table")
    # The sum is hashed once more, for the difference of two sums would be the hash of the record they differ by.
    table.update((total % 2**256).to_bytes(32, "little") + count.to_bytes(8, "little") + columns.to_bytes(8, "little"))
    return table.hexdigest()


def fingerprint_label(label: str, *, salt: bytes) -> str:
    """Return the fingerprint of a data set that its owner names: changed rows or bounds do not make it a new one.

    Parameters
    ----------
    label
        The owner's name for it: "patients of the north clinic". Chosen by the owner, never by whoever writes the job.
    salt
        As for :func:`fingerprint_records`.
    """
    if not label.strip():
        raise ConfigError("a data set's label must not be empty; got one that is. Name the data set.")
    named = _keyed(salt, b"label")
    named.update(label.encode())
    return named.hexdigest()


def _keyed(salt: bytes, purpose: bytes) -> hashlib.blake2b:
    """Return a fresh keyed hash; purposes give unrelated hashes under one salt."""
    if not _SALT_BYTES_MIN <= len(salt) <= hashlib.blake2b.MAX_KEY_SIZE:
        raise ConfigError(f"a salt must have {_SALT_BYTES_MIN} to 64 bytes; got {len(salt)}. Use the ledger's.")
    return hashlib.blake2b(key=salt, digest_size=32, person=b"cloister " + purpose)
