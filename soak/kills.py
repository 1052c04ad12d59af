"""Kill an experiment at random moments, let it continue, and compare the result with one that nobody disturbed.

`python -m soak.kills --kills 50 --seed 7` prints one line per kill and a summary, and fails if a byte differs. A kill
is SIGKILL to the process that runs it, at a moment of its start (loading, lock, verifying) or while parts are written.
"""

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SPEC = """
agents = ["mcbrl:n=4", "exploit", "random"]
environments = ["chain", "riverswim"]
runs = {runs}
steps = 200
curve_every = 50
visits = true
"""
BLOCK = 5
_HANG = 300.0  # seconds after which a command that writes nothing is called hung


def contents(out: Path) -> dict[str, bytes]:
    """What a folder holds, file by file."""
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def parts(out: Path) -> int:
    """How many parts are written."""
    return sum(1 for _ in out.glob("*/*/[0-9]*.parquet"))


def begin(spec: Path, out: Path) -> subprocess.Popen[bytes]:
    """The experiment in a process of its own, with parts so small that there are many moments between them."""
    command = (
        "import pathlib, sys; from beliefbound.lab import experiments; "
        f"experiments.run(experiments.load_spec(pathlib.Path(sys.argv[1])), sys.argv[2], block={BLOCK})"
    )
    return subprocess.Popen([sys.executable, "-c", command, str(spec), str(out)], stderr=subprocess.PIPE)


def kill_and_compare(folder: Path, *, kills: int, runs: int, seed: int, say=print) -> list[str]:
    """Disturb an experiment `kills` times, then let it end; the names of files that differ from an undisturbed one."""
    rng = random.Random(seed)
    spec = folder / "spec.toml"
    spec.write_text(SPEC.format(runs=runs))
    undisturbed, disturbed = folder / "undisturbed", folder / "disturbed"
    _finish(begin(spec, undisturbed))
    whole = parts(undisturbed)
    killed = 0
    while killed < kills:
        child = begin(spec, disturbed)
        before, began = parts(disturbed), time.monotonic()
        early = rng.random() < 0.2
        aim = before + rng.randint(1, max(1, (whole - before) // (kills - killed + 1)))
        patience = rng.uniform(0.0, 2.5) if early else _HANG
        while parts(disturbed) < aim and child.poll() is None and time.monotonic() - began < patience:
            time.sleep(0.002)
        if not early and time.monotonic() - began >= _HANG:
            child.kill()
            raise RuntimeError(f"no new part for {_HANG:.0f} s")
        time.sleep(rng.uniform(0.0, 0.02))
        if child.poll() is not None:
            _finish(child)  # it was faster: play it again, to have something to kill
            shutil.rmtree(disturbed)
            continue
        child.send_signal(signal.SIGKILL)
        child.communicate()
        killed += 1
        say(f"kill {killed}: {'at the start' if early else 'while writing'}, {parts(disturbed)} of {whole} parts kept")
    _finish(begin(spec, disturbed))
    expected, found = contents(undisturbed), contents(disturbed)
    return sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))


def _finish(child: subprocess.Popen[bytes]) -> None:
    _, errors = child.communicate(timeout=3600)
    if child.returncode:
        raise RuntimeError(f"exit code {child.returncode}: {errors.decode()[-500:]}")


def main() -> None:
    """Kill as often as asked, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    arguments = parser.parse_args()
    print(f"{arguments.kills} kills, seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        differ = kill_and_compare(
            Path(folder), kills=arguments.kills, runs=40 * arguments.kills, seed=arguments.seed, say=print
        )
    if differ:
        sys.exit(f"{len(differ)} files differ, such as {differ[0]}")
    print(f"{arguments.kills} of {arguments.kills} kills survived: every file is the same, byte for byte")


if __name__ == "__main__":
    main()
