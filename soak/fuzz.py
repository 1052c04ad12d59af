"""Wrong calls of every public function and damaged files for every reader: each is refused in words, or works.

`python -m soak.fuzz --calls 100000 --seed 0` makes so many calls in a process of its own, which may crash or hang
without harm: it is started again at the next call, and the call counts as a failure. Call `k` of a seed is always the
same; `--only k` repeats it here, with its traceback. What a call may do:

* return; and no number in what it returns is silently not a number, and what it returns can be used;
* raise a `BeliefboundError`, or a `TypeError` about a missing or unknown argument;
* take up to 20 seconds of one core, and never five minutes, however busy the machine is.

Everything else is a failure: any other exception, a crash, a hang.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

LIMIT = 300.0  # seconds after which a call is called hung
_WORK = 20.0  # seconds of processor time that one call may take
_START = 600.0  # seconds until the first call: a fresh installation compiles
_FILES = 0.25  # share of calls that read a damaged file
_USAGE = re.compile(r"missing \d+ required|unexpected keyword|takes \d+ positional|takes from \d+|multiple values")


class Failure(NamedTuple):
    """A call that did what no call may do."""

    call: int
    what: str
    why: str


def make(seed: int, k: int) -> tuple[str, Callable[[], Any]]:
    """Call `k`: `(what it is, the call)`."""
    from soak.calls import FUNCTIONS, MODEST, UNTOUCHED, calls, things
    from soak.files import damaged_read
    from soak.wrong import disturbed, wrong_value

    rng = random.Random(f"{seed} {k}")
    if rng.random() < _FILES:
        return damaged_read(rng)
    known = calls()
    name = rng.choice(sorted(known))
    function, arguments = known[name]()
    changed = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        key = rng.choice(sorted(arguments)) if arguments else ""
        if key in UNTOUCHED or not key:
            continue
        act, huge = rng.random(), key not in MODEST
        if act < 0.35:
            arguments[key] = disturbed(arguments[key], rng) if act < 0.3 else wrong_value(rng, huge=huge)
        elif act < 0.7:
            arguments[key] = wrong_value(rng, huge=huge)
        elif act < 0.9:
            arguments[key] = rng.choice([things()[which] for which in sorted(things())])
        elif act < 0.95:
            del arguments[key]
        else:
            arguments["colour"] = 1
        if key in FUNCTIONS and callable(arguments.get(key)):
            arguments[key] = None  # what a function of the caller's own raises is the caller's
        changed.append(key)
    shown = ", ".join(f"{key}={_short(arguments.get(key, 'left out'))}" for key in dict.fromkeys(changed))
    return f"{name}({shown})", lambda: function(**arguments)


def outcome(call: Callable[[], Any]) -> tuple[str, str]:
    """`(what came of it, the failure in words or nothing)`."""
    from beliefbound.base.errors import BeliefboundError
    from soak.calls import use

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = call()
            bad = _not_a_number(found)
            use(found)
        return ("silent", f"not a number in {bad}") if bad else ("worked", "")
    except BeliefboundError as refusal:
        return ("refused", "") if len(str(refusal)) > 8 else ("silent", f"refused without words: {refusal!r}")
    except TypeError as refusal:
        if _USAGE.search(str(refusal)):
            return "refused", ""
        return "raised", _where(refusal)
    except Exception as fault:
        return "raised", _where(fault)


def work(seed: int, first: int, calls: int) -> None:
    """Make calls, and say on standard output which one begins and what came of it."""
    from beliefbound.base.executors.threads import available_threads

    make(seed, 0)
    for name in ("worked", "refused"):
        _tell(-1, name)
    for k in range(first, calls):
        what, call = make(seed, k)
        _tell(k, "begins", what)
        began = time.process_time()
        found = outcome(call)
        spent = (time.process_time() - began) / available_threads()
        _tell(k, *(found if spent <= _WORK else ("slow", f"took {spent:.0f} seconds on each core")))


def supervise(seed: int, calls: int, *, say: Callable[[str], object] = print) -> tuple[Counter[str], list[Failure]]:
    """Let a process of its own make the calls, and start another where it ends; what came of them.

    Whatever the processes write lies in one folder, which is removed at the end, also after those that were killed.
    """
    with tempfile.TemporaryDirectory(prefix="beliefbound-fuzz-", ignore_cleanup_errors=True) as folder:
        return _supervised(seed, calls, say, {**os.environ, "TMPDIR": folder})


def _supervised(
    seed: int, calls: int, say: Callable[[str], object], environment: dict[str, str]
) -> tuple[Counter[str], list[Failure]]:
    counts: Counter[str] = Counter()
    failures: list[Failure] = []
    k = 0
    while k < calls:
        child = subprocess.Popen(
            [sys.executable, "-m", "soak.fuzz", "--seed", str(seed), "--calls", str(calls), "--work", str(k)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1], errors="replace",
            env=environment,
        )  # fmt: skip
        what, begun, errors = "", k, []
        reader = threading.Thread(target=lambda c=child, e=errors: e.append(c.stderr.read()), daemon=True)
        reader.start()
        try:
            for line in _lines(child):
                number, kind, *text = line.rstrip("\n").split("\t")
                if kind == "begins":
                    begun, what = int(number), text[0]
                elif int(number) >= 0:
                    counts[kind] += 1
                    k = int(number) + 1
                    if text and text[0]:
                        failures.append(Failure(begun, what, text[0]))
                        say(f"call {begun}: {what}: {text[0]}")
        except BaseException:
            child.kill()
            raise
        child.wait()
        reader.join(10.0)
        child.stdout.close()
        child.stderr.close()
        if k < calls:
            how = "hang" if child.returncode == -9 else "crash"
            if not what:
                raise RuntimeError(f"nothing was called: {''.join(errors)[-2000:]}")
            counts[how] += 1
            last = "".join(errors).strip().splitlines()[-1:] or [""]
            failures.append(Failure(begun, what, f"{how}, exit code {child.returncode} {last[0]}"))
            say(f"call {begun}: {what}: {failures[-1].why}")
            k = begun + 1
    return counts, failures


def _lines(child: "subprocess.Popen[str]") -> Iterator[str]:
    """What the process says, until it ends; it is killed where one call takes too long."""
    assert child.stdout is not None
    timer: list[threading.Timer] = []

    def wait(seconds: float) -> None:
        for old in timer:
            old.cancel()
        timer[:] = [threading.Timer(seconds, child.kill)]
        timer[0].daemon = True
        timer[0].start()

    wait(_START)
    for line in child.stdout:
        if "\t" in line:
            wait(LIMIT)
            yield line
    timer[0].cancel()


def _tell(k: int, kind: str, text: str = "") -> None:
    clean = " ".join(text.split()).encode("ascii", "replace").decode()
    sys.stdout.write(f"{k}\t{kind}\t{clean}\n")
    sys.stdout.flush()


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except Exception as fault:
        text = f"{type(value).__name__} that cannot be shown: {fault!r}"
    return text if len(text) < 80 else text[:77] + "..."


def _where(fault: BaseException) -> str:
    frames = traceback.extract_tb(fault.__traceback__)
    own = [frame for frame in frames if "beliefbound" in frame.filename] or frames
    return f"{type(fault).__name__}: {str(fault)[:200]} at {Path(own[-1].filename).name}:{own[-1].lineno}"


def _not_a_number(found: Any) -> str:
    """The name of an attribute with a number that is not one, or nothing."""
    import numpy as np

    if isinstance(found, float | np.ndarray):
        return "the result" if np.asarray(found).dtype.kind == "f" and np.isnan(found).any() else ""
    for name in ("value", "values", "model_values", "weights", "rewards", "total", "utility", "lower", "upper"):
        held = getattr(found, name, None)
        if isinstance(held, float | np.ndarray) and np.asarray(held).dtype.kind == "f" and np.isnan(held).any():
            return f".{name}"
    repr(found)
    return ""


def main() -> None:
    """Make as many calls as asked, and say what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    parser.add_argument("--only", type=int, help="repeat this call here")
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work is not None:
        work(arguments.seed, arguments.work, arguments.calls)
        return
    if arguments.only is not None:
        from soak.calls import use

        what, call = make(arguments.seed, arguments.only)
        print(what)
        found = call()
        print(found)
        use(found)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    print(f"{arguments.calls} calls, seed {arguments.seed}", flush=True)
    began = time.monotonic()
    counts, failures = supervise(arguments.seed, arguments.calls, say=lambda text: print(text, flush=True))
    told = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    print(f"{sum(counts.values())} calls in {time.monotonic() - began:.0f} s: {told}")
    if failures:
        sys.exit(f"{len(failures)} failures, such as call {failures[0].call}")
    print("no crash, no hang, no exception of any other kind")


if __name__ == "__main__":
    main()
