"""Pairs of simulations that release the same, on neighbouring tables: all that they show must be the same, too.

:mod:`cloister.audit.whole_view` says what is tested and why; :mod:`.neighbours`, what the tables are. Where noise is
sampled jointly nobody's draws can be shifted: there a record changes its holder, which leaves all sums as they are.
Last, the first party's table is unfit on both inputs, and others must see the same error.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shutil import copyfile

import msgspec

from cloister.audit.whole_view import Leaf, Released, View, WholeViewReport, compare_views, flatten
from cloister.crypto import Stream, SystemEntropy
from cloister.errors import CloisterError, LocalProtocolError
from cloister.exposure.neighbours import ALIGNED, Neighbours, Tables
from cloister.job import COORDINATOR, OwnSide, Setup
from cloister.privacy.ledger import Ledger
from cloister.privacy.mechanisms import Noise
from cloister.privacy.samplers import OnProgress
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.protocol import find_protocol
from cloister.protocols.align.alignment import encode_alignment
from cloister.records import IntArray
from cloister.report.evaluation import evaluate_centres
from cloister.report.folder import load_arrays, read_result, write_result
from cloister.report.layout import make_console
from cloister.report.picture import draw_picture
from cloister.report.text import print_report
from cloister.runtime import Progress
from cloister.runtime.local import Carried
from cloister.sessions.instruments import Instruments
from cloister.sessions.simulation import Clustered, Simulation, summarise

_KEY_BYTES = 32
_TRIES = 8  # for a pair in which all codebooks, too, are the same
_Pair = tuple[View, View, View]


def compare_everything(
    setup: Setup, *, pairs: int = 2, ledgers: bool = False, picture: bool = False
) -> WholeViewReport:
    """Compare all that a private job's runs show, on made-up neighbouring tables.

    Parameters
    ----------
    setup
        The job; no table and no ledger of it is read.
    pairs
        How many pairs of runs, each with fresh secrets and noise.
    ledgers
        Give every party a ledger for the while.
    picture
        Draw the picture, too: half a second a run.
    """
    compared: list[_Pair] = []
    for _ in range(pairs):
        for _ in range(_TRIES):
            with tempfile.TemporaryDirectory() as workshop:
                runs = _Runs(setup, SystemEntropy().bytes(_KEY_BYTES), Path(workshop), ledgers=ledgers, picture=picture)
                pair = runs.compare()
                if pair is not None:
                    compared += [pair, runs.compare_refusals()]
                    break
    return replace(compare_views(compared), pairs=len(compared) // 2)


class _ShiftedNoise:
    """A role's noise: the same in each run of a pair, but for the shifts of some draws."""

    is_simulation = True

    def __init__(self, stream: Stream, shifts: Mapping[int, IntArray]) -> None:
        self._sampler, self._shifts, self._draws = SimulationSampler(stream), shifts, 0

    def draw(self, mechanism: Noise, entries: int, on_progress: OnProgress | None = None) -> IntArray:
        """Draw the next vector."""
        noise = self._sampler.draw(mechanism, entries)
        shift = self._shifts.get(self._draws)
        self._draws += 1
        return noise if shift is None else noise + shift


@dataclass(kw_only=True)
class _Seen:
    """What one run shows, and what it released."""

    view: dict[str, Leaf] = field(default_factory=dict)
    released: Released | None = None
    failed: bool = False


class _Runs:
    """The runs of one pair: all with the same keys and, but for shifts, the same noise."""

    def __init__(self, setup: Setup, key: bytes, workshop: Path, *, ledgers: bool, picture: bool) -> None:
        job = setup.job
        if job.protocol.facts.split == "columns":
            job = replace(job, data=msgspec.structs.replace(job.data, records=ALIGNED))
        self._job, self._network, self._key, self._picture = job, setup.network, key, picture
        self._names = (COORDINATOR, *(party.name for party in job.parties))
        self._workshop, self._runs = workshop, 0
        self._ledger = workshop / "blank.ledger" if ledgers else None
        if self._ledger is not None:
            Ledger(self._ledger).close()  # copies have its salt, so that fingerprints of equal tables are equal
        self._neighbours = Neighbours.draw(job, key)

    def compare(self) -> _Pair | None:
        """Run without the record, the same again, and with it; None if they come to no result, or to other releases."""
        neighbours: Neighbours | None = self._neighbours
        first = self._run(self._neighbours.without)
        if first.released is not None and first.released.drawn_by is None:
            neighbours = self._neighbours.move_record()
            if neighbours is not None:
                first = self._run(neighbours.without)
        if neighbours is None or (first.released is None and not first.failed):
            return None
        present = self._run_alike(neighbours.present, first.released)
        if present is None or (first.failed and present.failed):
            return None
        return first.view, self._run(neighbours.without).view, present.view

    def compare_refusals(self) -> _Pair:
        """The same with a table that is unfit on both inputs."""
        unfit = self._neighbours.spoil()
        without = self._run(unfit.without).view
        return without, without, self._run(unfit.present).view

    def _run_alike(self, tables: Tables, wanted: Released | None) -> _Seen | None:
        """Run with noise that makes the same releases as those of another run."""
        shifts: dict[int, IntArray] = {}
        shifted = None if wanted is None or wanted.drawn_by is None else self._names[wanted.drawn_by]
        for _ in range(1 + (0 if wanted is None else len(wanted.vectors))):
            seen = self._run(tables, shifted, shifts)
            if wanted is None or seen.released is None:
                return seen
            if seen.released.given != wanted.given:
                return None
            shift = wanted.find_shift(seen.released)
            if shift is None:
                return seen
            shifts[shift[0]] = shifts.get(shift[0], 0) + shift[1]
        raise LocalProtocolError("some noise must make two runs release the same; none did: this is a bug.")

    def _run(self, tables: Tables, shifted: str | None = None, shifts: Mapping[int, IntArray] | None = None) -> _Seen:
        """Simulate once; return all that others than the owners of the tables see."""
        seen, steps = _Seen(), list[Progress]()
        self._runs += 1
        folder = self._workshop / str(self._runs)
        folder.mkdir()
        instruments = Instruments(
            keys=self._key, make_sampler=partial(self._make_sampler, shifted, shifts or {}), record_frames=True
        )
        setup = Setup(job=self._job, own=self._open_ledgers(folder), folder=folder, network=self._network)
        try:
            simulation = Simulation.open(
                setup, self._neighbours.write(tables, folder), on_progress=steps.append, instruments=instruments
            )
            clustered = simulation.cluster()
        except CloisterError as error:
            seen.view |= flatten(error, "error")
            seen.failed = True
        else:
            seen.released = find_protocol(setup.job).find_released(clustered.agreed, clustered.parties)
            seen.view |= self._show_result(simulation, clustered, folder / "result")
            seen.view |= self._show_messages(simulation, clustered, seen.released)
        seen.view |= flatten(steps, "progress")
        return seen

    def _make_sampler(self, shifted: str | None, shifts: Mapping[int, IntArray], role: str) -> _ShiftedNoise:
        return _ShiftedNoise(Stream.from_seed(self._key, "noise", role), shifts if role == shifted else {})

    def _open_ledgers(self, folder: Path) -> dict[str, OwnSide]:
        if self._ledger is None:
            return {}
        own = {name: OwnSide(ledger=folder / f"{name}.ledger") for name in self._names[1:]}
        for side in own.values():
            assert side.ledger is not None
            copyfile(self._ledger, side.ledger)
        return own

    # --- what is seen -------------------------------------------------------------------------------------------------

    def _show_result(self, simulation: Simulation, clustered: Clustered, folder: Path) -> Iterator[tuple[str, Leaf]]:
        """The result folder, and the report as it is printed from there."""
        evaluation = evaluate_centres(simulation.join_records(), clustered.finding.centres)
        result = summarise(simulation.setup, clustered, evaluation)
        write_result(result, folder, picture=draw_picture(result) if self._picture else None)
        yield from _flatten_folder(folder)
        out = io.StringIO()
        print_report(read_result(folder), make_console(out))
        yield from flatten(out.getvalue(), "report")
        if simulation.aligned is not None:
            for name, alignment in list(simulation.aligned.alignments.items())[1:]:  # the first is its owner's
                yield from flatten(msgspec.json.decode(encode_alignment(alignment)), f"{name}.alignment.json")

    def _show_messages(
        self, simulation: Simulation, clustered: Clustered, released: Released | None
    ) -> Iterator[tuple[str, Leaf]]:
        """Who sent how much to whom; and the bytes, where they follow from what was released."""
        run = None if simulation.aligned is None else simulation.aligned.run
        for place, carried in enumerate((*(() if run is None else run.frames), *clustered.run.frames)):
            sender, receiver = self._names[carried.sender], self._names[carried.receiver]
            path = f"message {place}, step {carried.step}, {sender} to {receiver}"
            yield f"{path}: length", len(carried.frame)
            if released is not None and _follows(carried, released):
                yield path, carried.frame


def _flatten_folder(folder: Path) -> Iterator[tuple[str, Leaf]]:
    """Yield what a folder holds: names, sizes, and what is in files of JSON and NumPy; of others, the bytes."""
    for path in sorted(folder.iterdir()):
        raw = path.read_bytes()
        yield f"{path.name}: bytes", len(raw)
        if path.suffix == ".json":
            yield from flatten(msgspec.json.decode(raw), path.name)
        elif path.suffix == ".npz":
            yield from flatten(load_arrays(path), path.name)
        else:
            yield path.name, raw


def _follows(carried: Carried, released: Released) -> bool:
    """Whether a frame's bytes follow from what was released."""
    return released.follows == "all" or (released.follows == "to parties" and carried.receiver != 0)
