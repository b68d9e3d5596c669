"""Tables in: public bounds, encoding, and made-up records.

Reading order: :mod:`~cloister.columns` (public bounds and the map to [-1, 1]),
:mod:`~cloister.data.faults` and :mod:`~cloister.data.cells` (what a usable cell is),
:mod:`~cloister.data.source` with one module for each kind (:mod:`~cloister.data.csv_source`,
:mod:`~cloister.data.arrow_source`, :mod:`~cloister.data.memory_source`), :mod:`~cloister.data.table`
(batches on the grid), :mod:`~cloister.data.opening` (the door). For plans: :mod:`~cloister.data.synthetic`.
For the demonstration: :mod:`~cloister.data.samples`.
"""

from cloister.columns import Column, parse_bounds, to_original, to_unit
from cloister.data.opening import open_table
from cloister.data.samples import sample_folder
from cloister.data.synthetic import Sample, scale_to_domain
from cloister.data.table import Table, TableCheck

__all__ = [
    "Column",
    "Sample",
    "Table",
    "TableCheck",
    "open_table",
    "parse_bounds",
    "sample_folder",
    "scale_to_domain",
    "to_original",
    "to_unit",
]
