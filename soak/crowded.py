"""Two drivers on one folder, and a disk that fills up: what was written stays right, and so does the end.

`python -m soak.crowded --rounds 20 --seed 7` prints one line per round and a summary, and fails if a byte differs or a
process ends otherwise than it says. Two drivers start on the same folder within a random moment of each other: at least
one finishes, the other finishes or leaves with the lock's message. The disk is a small tmpfs of random size (mounted in
a private namespace by `unshare`); where the system allows no such mount, that half is skipped and the summary says so.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from soak.kills import SPEC, begin, contents

_RUNS = 60
_FILL = """
set -e
mount -t tmpfs -o size="$1" tmpfs "$2"
code=0
"$3" -m beliefbound run "$4" --out "$2/out" --block 5 2> "$5/words" || code=$?
echo $code > "$5/code"
[ ! -e "$2/out" ] || cp -r "$2/out" "$5/out"
"""


def two_drivers(spec: Path, out: Path, delay: float) -> list[str]:
    """Two on one folder, the second `delay` seconds later; what is wrong with how they ended."""
    first = begin(spec, out)
    time.sleep(delay)
    second = begin(spec, out)
    ends = [(child.communicate(timeout=600)[1].decode(), child.returncode) for child in (first, second)]
    wrong = [words[-300:] for words, code in ends if code and "another process" not in words]
    return wrong if any(code == 0 for _, code in ends) else [*wrong, "neither driver finished"]


def full_disk(spec: Path, folder: Path, size: int) -> list[str] | None:
    """An experiment on a disk of `size` bytes, what it wrote then continued on a large one (in `folder / "out"`).

    Returns what is wrong with how it ended; nothing at all where no disk can be mounted.
    """
    disk = folder / "disk"
    disk.mkdir(parents=True)
    command = [
        "unshare",
        "-rm",
        "bash",
        "-c",
        _FILL,
        "fill",
        str(size),
        str(disk),
        sys.executable,
        str(spec),
        str(folder),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    except FileNotFoundError:
        return None
    if done.returncode:
        return None
    code, words = int((folder / "code").read_text()), (folder / "words").read_text()
    wrong = []
    if code and ("Traceback" in words or "error:" not in words):
        wrong.append(f"exit code {code}: {words[-300:]}")
    end = begin(spec, folder / "out")
    errors = end.communicate(timeout=600)[1].decode()
    return [*wrong, errors[-300:]] if end.returncode else wrong


def main() -> None:
    """Crowd a folder as often as asked, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    print(f"{arguments.rounds} rounds, seed {arguments.seed}", flush=True)
    faults, filled, skipped = 0, 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spec = folder / "spec.toml"
        spec.write_text(SPEC.format(runs=_RUNS))
        begin(spec, folder / "undisturbed").communicate()
        expected = contents(folder / "undisturbed")
        whole = sum(map(len, expected.values()))
        for k in range(arguments.rounds):
            shared = folder / f"shared{k}"
            wrong = two_drivers(spec, shared, rng.uniform(0.0, 3.0))
            wrong += [f"{shared.name} differs"] if contents(shared) != expected else []
            size = int(rng.uniform(0.05, 1.5) * whole)
            outcome = full_disk(spec, folder / f"disk{k}", size)
            if outcome is None:
                skipped += 1
            else:
                filled += 1
                wrong += outcome
                wrong += [f"disk{k} differs"] if contents(folder / f"disk{k}" / "out") != expected else []
            faults += bool(wrong)
            print(f"round {k + 1}: {'; '.join(wrong) or 'right'} (disk of {size} bytes, {whole} needed)", flush=True)
    print(f"{arguments.rounds - faults} of {arguments.rounds} rounds right; {filled} disks filled, {skipped} skipped")
    if faults:
        sys.exit(1)


if __name__ == "__main__":
    main()
