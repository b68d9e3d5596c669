"""A Parquet folder larger than memory: it streams under a limit that loading it whole breaks."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from cloister.data import Column, to_unit
from cloister.numeric import FixedPoint

LIMIT_MIB = 48
DATA_MIB = 4 * LIMIT_MIB
COLUMNS = 8
FILES = 2  # each with one row group, which alone is twice the limit

# Runs in a process of its own. The limit is set once everything is imported and warm, so it is what the data may use.
SCRIPT = textwrap.dedent(
    """
    import resource, sys
    import numpy as np
    import pyarrow.parquet
    from cloister.data import open_table, parse_bounds
    from cloister.kmeans import cluster_sums

    folder, warm_up, mode, limit_mib = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    columns = parse_bounds({f"c{j}": (0, 10) for j in range(int(sys.argv[5]))})

    def reduce_by_streaming(path):
        table = open_table(path, columns, memory_budget_bytes=4 << 20, batch_rows=1 << 15)
        records = table.check().records
        for _ in range(2):  # two rounds, as a protocol reads the table in each
            sums = cluster_sums(table, np.zeros((1, len(columns))), threads=1).sums[0]
        return records, sums

    def reduce_whole(path):
        whole = pyarrow.parquet.read_table(path)
        return whole.num_rows, None

    reduce = reduce_by_streaming if mode == "stream" else reduce_whole
    reduce(warm_up)
    size = int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) * 1024
    resource.setrlimit(resource.RLIMIT_AS, (size + (limit_mib << 20),) * 2)
    try:
        records, sums = reduce(folder)
    except MemoryError:
        sys.exit("out of memory")
    print(records, *([] if sums is None else map(repr, sums.tolist())))
    """
)


def run_limited(folder: Path, warm_up: Path, mode: str, limit_mib: int) -> subprocess.CompletedProcess[str]:
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MALLOC_ARENA_MAX"), "1")
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), str(warm_up), mode, str(limit_mib), str(COLUMNS)],
        env={**os.environ, **one_thread, "ARROW_DEFAULT_MEMORY_POOL": "system"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Write the large folder and a small one like it; few distinct values, so that little goes to disk."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pyarrow.parquet as pq

    rows = DATA_MIB * (1 << 20) // (8 * COLUMNS) // FILES + 1
    base = np.arange(rows) % 11
    table = pa.table({f"c{j}": np.asarray((base + j) % 11, dtype=np.float64) for j in range(COLUMNS)})
    assert table.nbytes * FILES >= 4 * LIMIT_MIB << 20
    large, small = tmp_path_factory.mktemp("large"), tmp_path_factory.mktemp("small")
    for index in range(FILES):
        pq.write_table(table, large / f"part-{index}.parquet", row_group_size=rows)
    pq.write_table(table.slice(0, 1 << 16), small / "part-0.parquet")
    on_grid = FixedPoint().quantise(to_unit(np.arange(11.0)[:, None], [Column(name="c", low=0, high=10)]))[:, 0]
    sums = [on_grid[(base + j) % 11].sum() * FILES for j in range(COLUMNS)]
    return large, small, rows * FILES, sums


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit on address space is Linux's")
def test_a_folder_four_times_the_limit_streams_and_does_not_fit_whole(folders):
    large, small, rows, expected_sums = folders
    streamed = run_limited(large, small, "stream", LIMIT_MIB)
    assert streamed.returncode == 0, streamed.stderr
    records, *sums = streamed.stdout.split()
    assert int(records) == rows
    np.testing.assert_array_equal(np.array(sums, dtype=float), expected_sums)
    whole = run_limited(large, small, "whole", LIMIT_MIB)
    assert whole.returncode != 0
    assert "out of memory" in whole.stderr or "MemoryError" in whole.stderr
    # The whole folder does load when the limit is lifted: it is the limit that stopped it.
    assert run_limited(large, small, "whole", 4 * DATA_MIB).returncode == 0
