"""Tables in: public bounds, encoding, and data for studies.

Reading order: :mod:`~cloister.columns` (public bounds and the map to [-1, 1]),
:mod:`~cloister.data.faults` and :mod:`~cloister.data.cells` (what a usable cell is),
:mod:`~cloister.data.source` with one module for each kind (:mod:`~cloister.data.csv_source`,
:mod:`~cloister.data.arrow_source`, :mod:`~cloister.data.memory_source`), :mod:`~cloister.data.table`
(batches on the grid), :mod:`~cloister.data.opening` (the door). For studies:
:mod:`~cloister.data.partition`, :mod:`~cloister.data.synthetic`, :mod:`~cloister.data.separation`,
:mod:`~cloister.data.federated` with :mod:`~cloister.data.folktables_files` and
:mod:`~cloister.data.stackoverflow_files`, :mod:`~cloister.data.rotated_digits` with
:mod:`~cloister.data.idx_files`. For the demonstration: :mod:`~cloister.data.samples`.
"""

from cloister.columns import Column, parse_bounds, to_original, to_unit
from cloister.data.opening import open_table
from cloister.data.partition import split_by_column, split_by_label, split_even, split_uneven
from cloister.data.samples import sample_folder
from cloister.data.separation import separated_clusters, separation_index, time_synth
from cloister.data.synthetic import (
    FederatedSample,
    Sample,
    feddp_mixture,
    gaussian_mixture,
    s1_like,
    scale_to_domain,
)
from cloister.data.table import Table, TableCheck

__all__ = [
    "Column",
    "FederatedSample",
    "Sample",
    "Table",
    "TableCheck",
    "feddp_mixture",
    "gaussian_mixture",
    "open_table",
    "parse_bounds",
    "s1_like",
    "sample_folder",
    "scale_to_domain",
    "separated_clusters",
    "separation_index",
    "split_by_column",
    "split_by_label",
    "split_even",
    "split_uneven",
    "time_synth",
    "to_original",
    "to_unit",
]
