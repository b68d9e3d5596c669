"""A result on disk: comes back the same, appears whole or not at all, and is not believed when it was changed."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.report.examples import CENTRES, make_result

from cloister.data import Column
from cloister.errors import ConfigError
from cloister.report import folder as folder_module
from cloister.report.folder import check_destination, read_result, write_result
from cloister.report.result import Evaluation, KChoice, Learned, PartyTraffic, Result
from cloister.report.sizes import Sizes, fit_sizes

SIZES = {"unit": "records", "clusters": [1.0, 2.0, 3.0, 4.0], "noise": [0.5] * 4, "total": 10.0, "total_noise": 1.0}
words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
counts = st.integers(0, 2**60)


@st.composite
def results(draw: Any) -> Result:
    k, d = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    names = draw(st.lists(words.filter(str.strip), min_size=d, max_size=d, unique=True))
    numbers = st.floats(-1e300, 1e300)
    party = st.builds(
        PartyTraffic,
        name=words,
        bytes_sent=counts,
        bytes_received=counts,
        messages_sent=counts,
        messages_received=counts,
        rounds_missed=counts,
    )
    sizes = draw(st.lists(st.floats(0, 1e300), min_size=k, max_size=k))
    noise = draw(st.lists(st.floats(0, 1e300), min_size=k, max_size=k))
    unit, total_noise = draw(st.sampled_from(["records", "share"])), draw(st.floats(0, 1e300))
    known = Sizes(unit=unit, clusters=tuple(sizes), noise=tuple(noise), total=sum(sizes), total_noise=total_noise)
    tried = draw(st.lists(st.builds(KChoice, k=st.integers(1, 9), loss=st.floats(0, 1e300), score=numbers), max_size=3))
    return make_result(
        sizes=draw(st.none() | st.just(known)),
        centre_noise=draw(st.none() | arrays(np.float64, (k, d), elements=st.floats(0, 1e300))),
        curve=(*tried, KChoice(k=k, loss=0.5, score=1.0)) if tried else (),
        columns=tuple(Column(name=name, low=draw(st.floats(-9, 0)), high=draw(st.floats(1, 9))) for name in names),
        centres=draw(arrays(np.float64, (k, d), elements=numbers)),
        parties=tuple(draw(st.lists(party, max_size=3))),
        leakage=tuple(draw(st.lists(st.builds(Learned, role=words, what=words, how=words, note=words), max_size=3))),
        evaluation=draw(st.none() | st.builds(Evaluation, loss=counts.map(float), reference_loss=st.just(0.1))),
        network=None,
        ring_bits=draw(st.sampled_from([None, 32, 64])),
        notes=tuple(draw(st.lists(words, max_size=2))),
    )


def as_values(result: Result) -> dict[str, Any]:
    values = msgspec.structs.asdict(result)
    rows = {"centres": result.centres.tobytes(), "shape": result.centres.shape}
    return values | rows | {"centre_noise": None if result.centre_noise is None else result.centre_noise.tolist()}


@settings(max_examples=60, deadline=None)
@given(result=results())
def test_what_is_written_is_read(result: Result, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("results") / "r"
    write_result(result, folder)
    assert as_values(read_result(folder)) == as_values(result)


def test_the_folder_holds_files_that_others_can_read(tmp_path: Path) -> None:
    folder = write_result(make_result(), tmp_path / "deep" / "r", picture=b"png")
    assert sorted(path.name for path in folder.iterdir()) == [
        "centres.csv",
        "centres.npz",
        "picture.png",
        "result.json",
    ]
    document = json.loads((folder / "result.json").read_text())
    assert (document["schema"], document["k"], document["columns"][0]["name"]) == (2, 4, "age")
    with np.load(folder / "centres.npz") as arrays_:
        np.testing.assert_array_equal(arrays_["centres"], CENTRES)
        assert arrays_["columns"].tolist() == ["age", "systolic_bp", "bmi", "hba1c"]
    assert [path.name for path in folder.parent.iterdir()] == ["r"]


def test_a_folder_of_the_first_schema_is_read_without_its_sizes(tmp_path: Path) -> None:
    """They did not add up to their total, and some were in another unit than their noise."""
    folder = write_result(make_result(), tmp_path / "r")
    old = {"cluster_records": [10.0, 20.0, 3.0, 0.0], "cluster_records_noise": 60.0, "released_records": 30.0}
    change_json(schema=1, **old, sizes="gone", centre_noise="gone", curve="gone")(folder)
    read = read_result(folder)
    assert (read.sizes, read.centre_noise, read.curve) == (None, None, ())
    np.testing.assert_array_equal(read.centres, CENTRES)
    change_json(schema=2)(folder)
    change_json(**old)(folder)
    with pytest.raises(ConfigError, match="cluster_records"):
        read_result(folder)


def test_a_folder_of_the_first_schema_is_read_as_simulated(tmp_path: Path) -> None:
    folder = write_result(make_result(), tmp_path / "r")
    change_json(schema=1, ran="gone")(folder)
    assert read_result(folder).ran == "simulated"


def test_an_earlier_result_is_replaced_only_when_asked_for(tmp_path: Path) -> None:
    folder = write_result(make_result(), tmp_path / "r")
    with pytest.raises(ConfigError, match=r"earlier result.*--overwrite"):
        write_result(make_result(rounds=3), folder)
    assert read_result(folder).rounds == 12
    write_result(make_result(rounds=3), folder, overwrite=True)
    assert read_result(folder).rounds == 3


def test_a_folder_with_other_files_is_never_replaced(tmp_path: Path) -> None:
    folder = write_result(make_result(), tmp_path / "r")
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match=r"other files \(thesis\.txt\)"):
        write_result(make_result(), folder, overwrite=True)
    assert (folder / "thesis.txt").read_text() == "years of work"
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(ConfigError, match="got the file"):
        check_destination(file, overwrite=True)
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "picture.png").write_text("holiday")
    with pytest.raises(ConfigError, match="other files"):
        check_destination(pictures, overwrite=True)


@pytest.mark.parametrize("failing", ["_encode_arrays", "rename"])
def test_a_failure_while_writing_loses_nothing(failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_result(make_result(), tmp_path / "r")
    rename = Path.rename

    def stop(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    def stop_second(self: Path, target: Path) -> Path:
        return stop() if self.name == "fresh" else rename(self, target)  # type: ignore[return-value]

    if failing == "rename":
        monkeypatch.setattr(Path, "rename", stop_second)
    else:
        monkeypatch.setattr(folder_module, failing, stop)
    with pytest.raises(ConfigError, match="No space left"):
        write_result(make_result(rounds=3), folder, overwrite=True)
    monkeypatch.undo()
    assert read_result(folder).rounds == 12
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def change_json(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "result.json"
        document = json.loads(path.read_text())
        document.update(changes)
        path.write_text(json.dumps({key: value for key, value in document.items() if value != "gone"}))

    return change


def rewrite_npz(**arrays_: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        with np.load(folder / "centres.npz") as old:
            values = {name: old[name] for name in old.files} | arrays_
        np.savez(folder / "centres.npz", **values)

    return change


def make_bomb(folder: Path) -> None:
    """Small on disk, larger than the limit in memory."""
    with np.load(folder / "centres.npz") as old:
        values: dict[str, Any] = {name: old[name] for name in old.files}
    np.savez_compressed(folder / "centres.npz", **values, zeros=np.zeros(1 << 18))
    assert (folder / "centres.npz").stat().st_size < 1 << 16


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "result.json").unlink(), r"readable result\.json"),
        (lambda folder: (folder / "centres.npz").unlink(), r"readable centres\.npz"),
        (lambda folder: (folder / "result.json").write_text("{"), "complete Cloister result"),
        (lambda folder: (folder / "result.json").write_text("[1]"), "complete Cloister result"),
        (
            lambda folder: (folder / "result.json").write_bytes(b'{"schema": 2, "name": "\xff"}'),
            "complete Cloister result",
        ),
        (lambda folder: (folder / "result.json").write_text('{"x": ' + "[" * 100_000), "complete Cloister result"),
        (lambda folder: (folder / "centres.npz").write_bytes(b"PK"), "unchanged NumPy archive"),
        (change_json(schema=3), "schema 2; got 3. Update Cloister"),
        (change_json(schema=0), "schema 2; got 0. It was not"),
        (change_json(schema="gone"), "complete Cloister result"),
        (change_json(ran="gone"), "complete Cloister result.*ran"),
        (change_json(ran="somewhere"), "complete Cloister result.*ran"),
        (change_json(rounds="gone"), "complete Cloister result.*rounds"),
        (change_json(rounds=-1), "complete Cloister result.*rounds"),
        (change_json(extra=1), "complete Cloister result.*extra"),
        (change_json(centres=[[1, 2, 3, 4], [1]]), "equal length"),
        (change_json(centres=[]), "equal length"),
        (change_json(centres=[[1.0, 2, 3, None]] * 4), "complete Cloister result"),
        (change_json(centres=[[1.0, 2, 3, 1e999]] * 4), "complete Cloister result"),
        (change_json(centres=[[1.0, 2, 3, 4]] * 4), "differ.*centres"),
        (change_json(k=5), "k = 5 with 4 centres"),
        (change_json(columns=[{"name": "a", "low": 2, "high": 1}] * 4), "complete Cloister result"),
        (change_json(sizes=SIZES | {"clusters": [7.0, 3.0], "noise": [0.0, 0.0]}), "of 4 clusters; got 2"),
        (change_json(sizes=SIZES | {"noise": [0.0, 0.0]}), "noise of each of 4 clusters; got 2"),
        (change_json(sizes=SIZES | {"clusters": [1.0, 1.0, 1.0, 1.0]}), "add up to their total"),
        (change_json(sizes=SIZES | {"clusters": [-1.0, 2.0, 1.0, 1.0]}), "complete Cloister result.*clusters"),
        (change_json(sizes=SIZES | {"unit": "people"}), "complete Cloister result.*unit"),
        (change_json(centre_noise=[[1.0, 2, 3, 4]] * 3), "the centres' shape"),
        (change_json(centre_noise=[[-1.0, 2, 3, 4]] * 4), "at least 0"),
        (change_json(curve=[{"k": 3, "loss": 1.0, "score": 1.0}]), "chosen k, 4"),
        (change_json(curve=[{"k": 4, "loss": 1.0}]), "complete Cloister result.*score"),
        (change_json(created="yesterday"), "ISO 8601"),
        (change_json(transcript_sha256="00"), "64 lower-case"),
        (rewrite_npz(centres=CENTRES + 1e-12), "differ.*centres"),
        (rewrite_npz(low=np.zeros(4)), "differ.*low"),
        (rewrite_npz(extra=np.zeros(4)), "differ.*extra"),
        (rewrite_npz(centres=np.array([{"a": 1}], dtype=object)), "unchanged NumPy archive"),
        (make_bomb, "unchanged NumPy archive"),
    ],
)
def test_a_changed_folder_is_refused(
    damage: Callable[[Path], None], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_result(make_result(), tmp_path / "r")
    damage(folder)
    monkeypatch.setattr(folder_module, "MAX_FILE_BYTES", 1 << 20)
    with pytest.raises(ConfigError, match=message.replace("differ", "difference in")):
        read_result(folder)


@settings(max_examples=150, deadline=None)
@given(file=st.sampled_from(["result.json", "centres.npz"]), position=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_any_changed_byte_is_harmless_or_refused(
    file: str, position: int, byte: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = write_result(make_result(), tmp_path_factory.mktemp("results") / "r")
    raw = bytearray((folder / file).read_bytes())
    raw[position % len(raw)] = byte
    (folder / file).write_bytes(raw)
    try:
        np.testing.assert_array_equal(read_result(folder).centres, CENTRES)
    except ConfigError as error:
        assert file in str(error) or "agree" in str(error)


def test_an_absurdly_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_result(make_result(), tmp_path / "r")
    monkeypatch.setattr(folder_module, "MAX_FILE_BYTES", 100)
    with pytest.raises(ConfigError, match="at most 100 bytes"):
        read_result(folder)
    with pytest.raises(ConfigError, match="must be a folder"):
        read_result(tmp_path / "nothing")


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    """The archive names a function that would leave a folder behind; it must not run."""
    folder = write_result(make_result(), tmp_path / "r")
    trace = tmp_path / "trace"
    payload = b"cos\nmkdir\n(V" + str(trace).encode() + b"\ntR."
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "|O", "fortran_order": False, "shape": (1,)})
    with zipfile.ZipFile(folder / "centres.npz", "w") as archive:
        archive.writestr("centres.npy", out.getvalue() + payload)
    with pytest.raises(ConfigError, match="unchanged NumPy archive"):
        read_result(folder)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"centres": CENTRES[:, :3]}, "4 coordinates"),
        ({"centres": CENTRES[0]}, "shape"),
        ({"centres": np.full((4, 4), np.nan)}, "finite; got 16"),
        ({"rounds": -1}, "rounds"),
        ({"sizes": fit_sizes(np.ones(3), np.ones(3))}, "of 4 clusters; got 3"),
        ({"centre_noise": CENTRES[:3]}, "the centres' shape"),
        ({"centre_noise": np.full((4, 4), np.inf)}, "finite"),
        ({"centre_noise": np.full((4, 4), -1.0)}, "at least 0"),
        ({"curve": (KChoice(k=3, loss=1.0, score=1.0),)}, "chosen k, 4"),
        ({"curve": (KChoice(k=4, loss=float("nan"), score=1.0),)}, "loss of k = 4"),
        ({"curve": (KChoice(k=4, loss=1.0, score=float("inf")),)}, "scores of curve"),
        ({"evaluation": Evaluation(loss=float("nan"), reference_loss=1)}, r"evaluation\.loss"),
        ({"created": "2026-01-31T12:00:00"}, "offset"),
        ({"transcript_sha256": "AB" * 32}, "lower-case"),
        ({"seeded": False}, "must be left out of a result without a seed"),
    ],
)
def test_a_result_that_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_result(**changes)


def test_a_result_does_not_change_with_the_array_it_came_from() -> None:
    centres = CENTRES.copy()
    result = make_result(centres=centres)
    centres[0, 0] = -1
    assert result.centres[0, 0] == 33
    with pytest.raises(ValueError, match="read-only"):
        result.centres[0, 0] = 1
    noise = CENTRES.copy()
    result = make_result(centre_noise=noise)
    noise[0, 0] = -1
    assert result.centre_noise is not None
    assert result.centre_noise[0, 0] == 33


def test_totals_count_both_directions() -> None:
    result = make_result()
    assert result.bytes_total == 3 * (2312 + 20_001)
    assert result.messages_total == 3 * 27
    assert result.evaluation is not None
    assert result.evaluation.ratio == pytest.approx(1.5)
    assert Evaluation(loss=0.0, reference_loss=0.0).ratio is None
