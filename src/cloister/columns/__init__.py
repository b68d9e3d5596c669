"""Columns (what people have), their public bounds and levels, and coordinates (what is clustered).

Reading order: :mod:`.column`, :mod:`.entries` (from a job file's tables), :mod:`.coordinates` (the map between original
units and the domain [-1, 1]^d), :mod:`.scale` (another, by a spread that was released).
"""

from cloister.columns.column import (
    OTHER,
    WHY_PUBLIC,
    Column,
    Kind,
    count_days,
    require_distinct,
    show_bounds,
    show_date,
)
from cloister.columns.coordinates import (
    UNKNOWN_LEVEL,
    Axes,
    Coordinate,
    clip_unit,
    column_highs,
    column_lows,
    column_slices,
    has_one_coordinate,
    list_coordinates,
    scale_to_original,
    spread_levels,
    to_original,
    to_unit,
    unit_ends,
    unit_starts,
)
from cloister.columns.entries import parse_bounds, parse_column, refuse_missing_bounds
from cloister.columns.scale import (
    CLIP,
    SPREAD_LEAST,
    Scale,
    Within,
    least_spread,
    level_spread,
    list_levels,
    take_bounds,
)

__all__ = [
    "CLIP",
    "OTHER",
    "SPREAD_LEAST",
    "UNKNOWN_LEVEL",
    "WHY_PUBLIC",
    "Axes",
    "Column",
    "Coordinate",
    "Kind",
    "Scale",
    "Within",
    "clip_unit",
    "column_highs",
    "column_lows",
    "column_slices",
    "count_days",
    "has_one_coordinate",
    "least_spread",
    "level_spread",
    "list_coordinates",
    "list_levels",
    "parse_bounds",
    "parse_column",
    "refuse_missing_bounds",
    "require_distinct",
    "scale_to_original",
    "show_bounds",
    "show_date",
    "spread_levels",
    "take_bounds",
    "to_original",
    "to_unit",
    "unit_ends",
    "unit_starts",
]
