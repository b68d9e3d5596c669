"""Reading tables: sources, encoding, and the demo's sample.

Reading order: :mod:`~cloister.columns` (public bounds and the map to [-1, 1]), :mod:`~cloister.data.cells` (what a
usable cell is), :mod:`~cloister.data.source` (with sources in memory), :mod:`~cloister.data.csv_source`,
:mod:`~cloister.data.arrow_source`, :mod:`~cloister.data.table` (batches on the grid),
:mod:`~cloister.data.common_order`, :mod:`~cloister.data.opening` (`open_table`), :mod:`~cloister.data.samples`.
"""

from cloister.columns import Column, parse_bounds, to_original, to_unit
from cloister.data.opening import open_points, open_table, read_ids
from cloister.data.samples import sample_folder
from cloister.data.table import EncodedTable, Table, TableCheck

__all__ = [
    "Column",
    "EncodedTable",
    "Table",
    "TableCheck",
    "open_points",
    "open_table",
    "parse_bounds",
    "read_ids",
    "sample_folder",
    "to_original",
    "to_unit",
]
