"""No damage to a store becomes a number, and nothing that was finished is lost."""

import io
import random
from pathlib import Path

import msgspec
import polars as pl
import pytest

import beliefbound.lab.experiments.marker as marker
import beliefbound.lab.experiments.spec as specs
from beliefbound.base.errors import FileError
from beliefbound.base.executors import ThreadExecutor
from beliefbound.base.io.atomic import PREFIX, clean, write_aside
from beliefbound.lab.experiments.marker import read_marker
from beliefbound.lab.experiments.run import run
from beliefbound.lab.experiments.spec import Spec, checked
from beliefbound.lab.experiments.store import Store
from beliefbound.report.experiment import write_report
from soak.kills import contents

SPEC = Spec(agents=("oracle", "random"), environments=("chain",), runs=9, steps=20, curve_every=5, visits=True)
COLUMNS = ("total", "utility", "curve", "visits")


def restore(folder: Path, files: dict[str, bytes]) -> None:
    for path in [p for p in folder.rglob("*") if p.is_file() and str(p.relative_to(folder)) not in files]:
        path.unlink()
    for name, data in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_bytes(data)


def parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*/*.parquet"))


# -- damage ---------------------------------------------------------------------------------------------------


def damage(rng: random.Random, paths: list[Path]) -> str:
    """Do something to a part that a disk, a copy or a person might do; says what."""
    path, other = rng.sample(paths, 2)
    data = bytearray(path.read_bytes())
    at = rng.randrange(len(data))
    kind = rng.choice(("flip", "truncate", "extend", "zero", "swap", "overwrite", "move", "rename", "delete"))
    if kind == "flip":
        data[at] ^= 1 << rng.randrange(8)
    elif kind == "truncate":
        del data[at:]
    elif kind == "extend":
        data += rng.randbytes(rng.randint(1, 100))
    elif kind == "zero":
        end = min(len(data), at + rng.randint(1, 64))
        data[at:end] = bytes(end - at)
    if kind == "swap":
        first, second = path.read_bytes(), other.read_bytes()
        path.write_bytes(second)
        other.write_bytes(first)
    elif kind == "overwrite":
        path.write_bytes(other.read_bytes())
    elif kind == "move":  # a sound part in another cell, or the only copy under another's name
        path.rename(other.parent / path.name)
    elif kind == "rename":  # the right checksum with other runs, or another checksum
        first, last, seal = path.stem.split("-")
        path.rename(path.with_name(rng.choice((f"{int(first) + 1}-{last}-{seal}", f"{first}-{last}")) + ".parquet"))
    elif kind == "delete":
        path.unlink()
    else:
        path.write_bytes(data)
    return f"{kind} {path.parent.name}/{path.name}"


@pytest.mark.full
def test_a_thousand_damaged_stores_give_no_wrong_number(tmp_path):
    """Either an error that names a file, or only true rows; and a repair brings back every byte."""
    rng = random.Random(5)
    out = tmp_path / "a"
    run(SPEC, out, block=3)
    sound = contents(out)
    truth = Store.existing(out).read(COLUMNS)
    refusals = []
    for i in range(1000):
        done = damage(rng, parts(out))
        changed = contents(out) != sound
        for look in (lambda: Store.existing(out).check(), lambda: Store.existing(out).read(COLUMNS)):
            try:
                found = look()
            except FileError as error:
                refusals.append(str(error))
                assert changed, done
                continue
            if isinstance(found, pl.DataFrame):
                keys = ["environment", "agent", "seed", "run"]
                assert found.equals(truth.join(found.select(keys), on=keys, how="semi")), done
        if i % 40 == 0:
            run(SPEC, out, block=3, repair=True)
            assert contents(out) == sound, done
        restore(out, sound)
    assert len(refusals) > 1500
    assert all("is corrupt" in text and "--repair" in text for text in refusals)


def test_a_damaged_spec_json_is_refused_and_repaired(tmp_path):
    rng = random.Random(6)
    out = tmp_path / "a"
    run(SPEC, out)
    sound = contents(out)
    written, refusals = sound["spec.json"], []
    for i in range(200):
        data = bytearray(written)
        at = rng.randrange(len(data))
        if i % 3:
            data[at] = rng.choice([x for x in range(256) if x != data[at]])
        else:
            del data[at : at + rng.randint(1, 30)]
        (out / "spec.json").write_bytes(data)
        try:
            assert read_marker(out).spec == checked(SPEC), data  # white space
        except FileError as error:
            refusals.append(str(error))
    assert len(refusals) > 150
    assert all("is corrupt" in text for text in refusals)
    (out / "spec.json").write_bytes(b"[" * 100_000)
    with pytest.raises(FileError, match=r"spec\.json is corrupt .* --repair"):
        run(SPEC, out)
    run(SPEC, out, repair=True)
    assert contents(out) == sound
    (out / "spec.json").unlink()
    with pytest.raises(FileError, match="holds other files and no spec.json"):
        run(SPEC, out)
    run(SPEC, out, repair=True)
    assert contents(out) == sound


def test_a_corrupt_part_is_named_and_repaired(tmp_path):
    truth = run(SPEC, tmp_path / "a", block=3).read()
    part = parts(tmp_path / "a")[1]
    frame = pl.read_parquet(part).with_columns(pl.col("total") + 1.0)
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    part.write_bytes(buffer.getvalue())  # a sound file with a wrong total
    with pytest.raises(FileError, match=rf"{part.name} is corrupt \(its bytes do not match .* --repair"):
        run(SPEC, tmp_path / "a")
    with pytest.raises(FileError, match="is corrupt"):
        write_report(tmp_path / "a")
    assert run(SPEC, tmp_path / "a", repair=True).read().equals(truth)
    part.unlink()
    part.mkdir()
    (part / "file").touch()
    with pytest.raises(FileError, match="is corrupt"):
        run(SPEC, tmp_path / "a")
    assert run(SPEC, tmp_path / "a", repair=True).read().equals(truth)


def test_parts_that_overlap_are_read_once(tmp_path):
    """As two writers leave them where the filesystem has no locks."""
    truth = run(SPEC, tmp_path / "a", block=9).read()
    run(SPEC, tmp_path / "b", block=2)
    for part in parts(tmp_path / "b"):
        part.rename(tmp_path / "a" / part.relative_to(tmp_path / "b"))
    assert len(parts(tmp_path / "a")) == 2 * (1 + 5)
    assert Store.existing(tmp_path / "a").read().equals(truth)


# -- versions -------------------------------------------------------------------------------------------------


def test_results_of_another_version_are_reported_but_not_continued(tmp_path, monkeypatch):
    truth = run(SPEC, tmp_path / "a").read()
    before = contents(tmp_path / "a")
    old = marker.version("beliefbound")
    monkeypatch.setattr(marker, "version", lambda name: "9.9.9")
    monkeypatch.setattr(specs, "version", lambda name: "9.9.9")
    said = rf"holds runs of beliefbound {old}; this is 9\.9\.9.*another folder, or .* pip install beliefbound=={old}"
    with pytest.raises(FileError, match=said):
        run(SPEC, tmp_path / "a")
    assert contents(tmp_path / "a") == before
    assert Store.existing(tmp_path / "a").read().equals(truth)
    assert f"beliefbound {old}" in write_report(tmp_path / "a")[1].read_text()


def test_a_folder_without_version_or_checksums_is_refused_in_words(tmp_path):
    run(SPEC, tmp_path / "a")
    (tmp_path / "a" / "spec.json").write_bytes(msgspec.json.encode(SPEC))
    for use in (lambda: run(SPEC, tmp_path / "a"), lambda: write_report(tmp_path / "a")):
        with pytest.raises(FileError, match="an older beliefbound, which recorded neither its version nor checksums"):
            use()


# -- how many runs --------------------------------------------------------------------------------------------


def test_fewer_runs_than_an_unfinished_folder_was_begun_for_are_just_those(tmp_path):
    def stop(cell, n):
        raise KeyboardInterrupt

    many, few = msgspec.structs.replace(SPEC, runs=10_000), msgspec.structs.replace(SPEC, runs=10)
    with pytest.raises(KeyboardInterrupt):
        run(many, tmp_path / "a", threads=1, block=4, progress=stop)
    played = []
    store = run(few, tmp_path / "a", progress=lambda cell, n: played.append(n))
    assert sum(played) <= 10 * 2
    assert store.read().group_by("agent", "seed").len()["len"].to_list() == [10] * 2
    assert store.read().equals(run(few, tmp_path / "b").read())
    assert write_report(tmp_path / "a", runs=10)[0]["runs"].to_list() == [10, 10]
    assert read_marker(tmp_path / "a").spec.runs == 10_000


# -- writers --------------------------------------------------------------------------------------------------


def test_a_second_writer_is_told_who_the_first_is(tmp_path):
    said = []

    def second(cell, n):
        with pytest.raises(FileError, match=r"process \d+ on .*, since .*, is writing to .*a already; wait until") as e:
            run(SPEC, tmp_path / "a")
        said.append(str(e.value))
        assert len(Store.existing(tmp_path / "a").read()) >= 3  # reading is free

    run(SPEC, tmp_path / "a", block=3, progress=second)
    assert len(said) == 6
    assert (tmp_path / "a" / ".lock").read_bytes() == b""


def test_a_file_that_is_being_written_is_not_cleaned_away(tmp_path):
    left = tmp_path / f"{PREFIX}abandoned.parquet"
    left.write_bytes(b"half of it")

    def write(aside: Path) -> None:
        clean(tmp_path)
        assert aside.exists()
        aside.write_text("whole")
        clean(tmp_path)

    write_aside(tmp_path / "file", write)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "whole"


def test_an_unwritable_folder_is_said_before_anything_is_played(tmp_path, monkeypatch):
    monkeypatch.setattr(ThreadExecutor, "map", lambda *a, **k: pytest.fail("played"))
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot write into .*choose a folder you can write to"):
        run(SPEC, tmp_path / "file" / "below")
    with pytest.raises(FileError, match="is a file; give a folder"):
        run(SPEC, tmp_path / "file")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    truth = run(SPEC, tmp_path / "b", block=3).read()
    run(msgspec.structs.replace(SPEC, runs=3), tmp_path / "a", block=3)
    before = contents(tmp_path / "a")
    write_bytes = Path.write_bytes

    def full(self, data):
        if self.suffix != ".parquet":
            return write_bytes(self, data)
        write_bytes(self, data[:50])
        return write_bytes(Path("/dev/full"), data)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        for use in (lambda: run(SPEC, tmp_path / "a", block=3), lambda: write_report(tmp_path / "a")):
            with pytest.raises(FileError, match="No space left on device; nothing already written is lost"):
                use()
    after = contents(tmp_path / "a")
    assert {name: data for name, data in after.items() if name != "spec.json"} == {
        name: data for name, data in before.items() if name != "spec.json"
    }
    assert run(SPEC, tmp_path / "a").read().equals(truth)


def test_blocks_too_many_to_list_are_made_one_by_one(tmp_path):
    """A thousand million runs of as many steps are as many blocks of one run."""
    spec = Spec(agents=("random",), environments=("chain",), runs=10**9, steps=10**9)
    missing = Store(tmp_path, spec).missing(spec.cells()[0], 1)
    assert [next(missing) for _ in range(3)] == [range(1), range(1, 2), range(2, 3)]
