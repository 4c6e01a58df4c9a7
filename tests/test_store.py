"""Results on disk: there as a whole or not at all, and nothing of a stranger's is ever replaced."""

from __future__ import annotations

import math
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import xarray

from mwjax import store
from mwjax.types import InputError

MEMORIES = 5
ATTRS = {"experiment": "toy", "root_seed": 3, "run_s": 0.5, "reused": False}


def toy_template(lives: int, memories: int = MEMORIES) -> xarray.Dataset:
    names = np.array(["beta", "memory_worth"], object)
    coords = xarray.Dataset(
        coords={
            "seed": ("seed", np.arange(lives), {"long_name": "seed of the life"}),
            "estimator": ("estimator", names, {"long_name": "worth estimator"}),
            "memory": np.arange(memories),
        }
    )
    return coords.assign(
        worth=store.variable(("seed", "estimator", "memory"), (lives, 2, memories), np.float32, long_name="worth"),
        shown=store.variable(("seed", "memory"), (lives, memories), np.int8, long_name="retrievals", units="retrieval"),
        broken=store.variable(("seed",), (lives,), np.int32, long_name="broken values"),
    )


def toy_arrays(start: int, stop: int, memories: int = MEMORIES) -> dict[str, np.ndarray]:
    """Lives start..stop-1; every value tells its place. `shown` comes wider than it is stored."""
    life = np.arange(start, stop)
    worth = life[:, None, None] + np.arange(2)[:, None] / 4 + np.arange(memories) / 64
    shown = (life[:, None] + np.arange(memories)) % 100
    return {"worth": worth.astype(np.float32), "shown": shown.astype(np.int32), "broken": life.astype(np.int32)}


def fill(sink: store.Writer | store.Memory, lives: int, batch: int) -> xarray.Dataset:
    for start in range(0, lives, batch):
        sink.write(toy_arrays(start, min(start + batch, lives)))
    return sink.finish(ATTRS)


def save(path: Path, lives: int = 10, batch: int = 4, fresh: bool = False) -> xarray.Dataset:
    with store.create(path, toy_template(lives), fresh=fresh) as writer:
        return fill(writer, lives, batch)


def files(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


@pytest.mark.parametrize("batch", [1, 3, 10, 25])
def test_round_trip_is_identical_to_memory(tmp_path, monkeypatch, batch):
    monkeypatch.setattr(store, "MAX_CHUNK_LIVES", 7)
    expected = fill(store.Memory(toy_template(25)), 25, 25)
    found = save(tmp_path / "r", 25, batch)
    xarray.testing.assert_identical(found.load(), expected)
    assert found.shown.dtype == np.int8
    np.testing.assert_array_equal(found.worth, toy_arrays(0, 25)["worth"])
    assert found.shown.attrs == {"long_name": "retrievals", "units": "retrieval"}
    assert found.sel(estimator="memory_worth", seed=24).worth.values[0] == np.float32(24.25)


def test_bytes_on_disk_do_not_depend_on_the_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "MAX_CHUNK_LIVES", 7)
    save(tmp_path / "a", 25, 1)
    save(tmp_path / "b", 25, 12)
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_opened_store_stays_on_disk(tmp_path):
    found = save(tmp_path / "r")
    assert found.worth.values.shape == (10, 2, MEMORIES)
    assert not found.variables["worth"]._in_memory
    xarray.testing.assert_identical(found, store.open_store(tmp_path / "r"))


def test_plain_xarray_opens_it_without_a_warning(tmp_path):
    save(tmp_path / "r")
    found = xarray.open_zarr(tmp_path / "r", chunks=None)
    assert found.broken.to_series().tolist() == list(range(10))


def test_memory_held_and_files_do_not_grow_with_lives(tmp_path):
    memories = 1000
    held, lives_held = [], []
    for lives in (3_000, 30_000):
        with store.create(tmp_path / "r", toy_template(lives, memories)) as writer:
            held.append(sum(rows.nbytes for rows in writer.held.values()))
            lives_held.append(writer.chunk_lives)
    assert held[0] == held[1] <= store.CHUNK_BYTES
    assert lives_held[0] == lives_held[1] >= 512


def test_one_file_a_chunk_and_variable(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "MAX_CHUNK_LIVES", 64)
    save(tmp_path / "r", 1000, 10)
    assert len(list((tmp_path / "r" / "worth" / "c").rglob("*/0/0"))) == math.ceil(1000 / 64)


def test_template_takes_no_memory():
    template = toy_template(10**6, 10**6)
    assert template.worth.shape == (10**6, 2, 10**6)


class Broken(Exception):
    pass


@pytest.mark.parametrize("trouble", [Broken, KeyboardInterrupt])
def test_trouble_in_the_middle_leaves_nothing(tmp_path, monkeypatch, trouble):
    monkeypatch.setattr(store, "MAX_CHUNK_LIVES", 2)

    def work() -> None:
        with store.create(tmp_path / "deep" / "r", toy_template(10)) as writer:
            writer.write(toy_arrays(0, 5))
            assert len(list((tmp_path / "deep").iterdir())) == 1
            raise trouble

    with pytest.raises(trouble):
        work()
    assert list((tmp_path / "deep").iterdir()) == []


def test_old_result_stays_until_the_new_one_is_complete(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "MAX_CHUNK_LIVES", 2)
    path = tmp_path / "r"
    save(path, 10)
    old = files(path)

    def work() -> None:
        with store.create(path, toy_template(6), fresh=True) as writer:
            writer.write(toy_arrays(0, 5))
            assert files(path) == old
            raise Broken

    with pytest.raises(Broken):
        work()
    assert files(path) == old
    assert save(path, 6, fresh=True).sizes["seed"] == 6
    assert list(tmp_path.iterdir()) == [path]


def test_old_result_comes_back_when_the_renaming_fails(tmp_path, monkeypatch):
    path = tmp_path / "r"
    save(path, 10)
    old, rename = files(path), Path.rename

    def refuse_new(self: Path, target: Path) -> Path:
        if target == path and not self.name.endswith("-old"):
            raise PermissionError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse_new)
    with pytest.raises(InputError, match="cannot write the results"):
        save(path, 6, fresh=True)
    assert files(path) == old
    assert list(tmp_path.iterdir()) == [path]


def test_missing_lives_are_no_result(tmp_path):
    with store.create(tmp_path / "r", toy_template(10)) as writer, pytest.raises(ValueError, match="4 lives of 10"):
        fill(writer, 4, 4)
    assert list(tmp_path.iterdir()) == []


def make_file(path: Path) -> None:
    path.write_text("mine")


def make_foreign(path: Path) -> None:
    path.mkdir()
    (path / "thesis.txt").write_text("mine")


def make_foreign_zarr(path: Path) -> None:
    xarray.Dataset({"x": ("a", np.arange(3))}).to_zarr(path, zarr_format=3, consolidated=False)


def make_empty(path: Path) -> None:
    path.mkdir()


def make_finished(path: Path) -> None:
    save(path)


def make_unfinished(path: Path) -> None:
    with store.create(path, toy_template(10)) as writer:
        writer.write(toy_arrays(0, 4))
        shutil.copytree(next(path.parent.glob(f".{path.name}.*")), path)


def make_unreadable(path: Path) -> None:
    save(path)
    (path / "zarr.json").write_text("{")


def lose_a_chunk(path: Path) -> None:
    save(path)
    (path / "worth" / "c" / "0" / "0" / "0").unlink()


def cut_a_chunk(path: Path) -> None:
    save(path)
    chunk = path / "worth" / "c" / "0" / "0" / "0"
    chunk.write_bytes(chunk.read_bytes()[:-3])


def break_metadata(path: Path) -> None:
    save(path)
    text = (path / "zarr.json").read_text()
    (path / "zarr.json").write_text(text.replace('"zstd"', '"nosuchcodec"'))


Make = Callable[[Path], None]


@pytest.mark.parametrize(
    ("make", "fresh", "message"),
    [
        (make_file, False, "is a file"),
        (make_file, True, "is a file"),
        (make_foreign, False, "not an mwjax store"),
        (make_foreign, True, "not an mwjax store"),
        (make_foreign_zarr, True, "not an mwjax store"),
        (make_empty, False, "not an mwjax store; .* or add --fresh"),
        (make_finished, False, "holds a finished result; .* or add --fresh"),
        (make_unfinished, False, "unfinished mwjax store; .* or add --fresh"),
        (make_unreadable, True, "damaged"),
    ],
)
def test_refused_targets_stay(tmp_path, make: Make, fresh, message):
    path = tmp_path / "r"
    make(path)
    before = files(tmp_path)
    with pytest.raises(InputError, match=message) as raised, store.create(path, toy_template(3), fresh=fresh):
        pytest.fail("must be refused before anything runs")
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert files(tmp_path) == before


@pytest.mark.parametrize("make", [make_empty, make_finished, make_unfinished, lose_a_chunk])
def test_fresh_replaces(tmp_path, make: Make):
    make(tmp_path / "r")
    assert save(tmp_path / "r", 3, fresh=True).sizes["seed"] == 3


def test_a_result_that_appears_meanwhile_is_kept(tmp_path):
    path = tmp_path / "r"
    with store.create(path, toy_template(10)) as writer:
        make_finished(path)
        before = files(path)
        with pytest.raises(InputError, match="finished result"):
            fill(writer, 10, 10)
    assert files(path) == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "no such folder"),
        (make_file, "is a file"),
        (make_foreign, "not an mwjax store"),
        (make_foreign_zarr, "not an mwjax store"),
        (make_unfinished, "unfinished"),
        (make_unreadable, "damaged"),
        (lose_a_chunk, "damaged"),
        (cut_a_chunk, "damaged"),
        (break_metadata, "damaged"),
    ],
)
def test_open_store_tells_what_is_wrong(tmp_path, make: Make, message):
    make(tmp_path / "r")
    with pytest.raises(InputError, match=message) as raised:
        store.open_store(tmp_path / "r")
    assert str(raised.value).startswith(f"{tmp_path / 'r'}: ")
    assert "\n" not in str(raised.value)


def test_folder_that_cannot_be_made(tmp_path):
    make_file(tmp_path / "file")
    with (
        pytest.raises(InputError, match="cannot write the results"),
        store.create(tmp_path / "file/r", toy_template(3)),
    ):
        pytest.fail("must be refused before anything runs")
    assert (tmp_path / "file").read_text() == "mine"


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Writing beyond `size` bytes in one file is an error of the operating system, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_full_disk_is_one_line_and_leaves_nothing(tmp_path):
    memories = 2000
    noise = np.random.default_rng(0).random((10, 2, memories), np.float32)
    with pytest.raises(InputError, match="cannot write the results") as raised, largest_file(4096):  # noqa: SIM117
        with store.create(tmp_path / "r", toy_template(10, memories)) as writer:
            writer.write(toy_arrays(0, 10, memories) | {"worth": noise})
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []
