"""Every file that is read, damaged: model folders, specs, parts of a store, its marker, and policies.

A reader gives back what was written, or says what is wrong. A part of a store that was damaged must never be read.
"""

import random
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

import beliefbound as bb
from beliefbound.bounds.policy_files import load_policy
from beliefbound.lab.experiments import load_spec, run
from beliefbound.lab.experiments.store import Store
from soak.calls import scratch, things

_FORMATS = (".pomdpx", ".pomdp", ".npz")
_CELLS = ("", "-1", "1e400", "nan", "inf", "0.5", "9" * 30, "x", "é", '"', "\x00", " 1 ", "2", "1e-320", "\ufeff", "-0")
_SPEC = """agents = ["exploit", "random"]
environments = ["chain"]
runs = 3
steps = 5
seeds = [1]
discount = 0.9
curve_every = 2
visits = true
title = "x"
"""
_WORDS = (b"[", b"]", b"{", b'"', b"=", b".", b",", b"9" * 40, b"\x00", b"\xff", b"\n", b"true", b"-", b"'", b"null")


@cache
def originals() -> Path:
    """Good files of every kind, made once."""
    folder, x = scratch() / "originals", things()
    folder.mkdir()
    bb.write_models(folder / "models", x["finite"], discount=0.9, test=x["finite"], true=x["mdp"])
    weighted = bb.FiniteBelief.of(
        x["known"].models, [0.2, 0.3, 0.5], initial=x["known"].initial, states=("a", "b", "c"), actions=("x", "y")
    )
    bb.write_models(folder / "named", weighted, discount=0.9)
    for ending in _FORMATS:
        bb.write_models(folder / f"models{ending}", weighted, discount=0.9)
    (folder / "spec.toml").write_text(_SPEC)
    run(load_spec(folder / "spec.toml"), folder / "store", block=2)
    x["table"].save(folder / "table.json", state_names=["a", "b", "c"], note="x")
    x["staged"].save(folder / "staged.json")
    x["bracket"].policy.save(folder / "learns.npz")
    bb.bracket(x["dirichlet"], discount=0.9, horizon=3, time_limit=0.5, rng=0).policy.save(folder / "particles.npz")
    return folder


def damaged_read(rng: random.Random) -> tuple[str, Callable[[], object]]:
    """`(what was done, the reading of it)`."""
    policies = ["table.json", "staged.json", "learns.npz", "particles.npz"]
    formats = [f"models{ending}" for ending in _FORMATS]
    kind = rng.choice(["models", "named", "spec.toml", *policies, *formats, "store"])
    target = Path(tempfile.mkdtemp(dir=scratch())) / kind
    source = originals() / kind
    if source.is_dir():
        shutil.copytree(source, target)
        victim = rng.choice(sorted(path for path in target.rglob("*") if path.is_file() and path.suffix))
    else:
        shutil.copy(source, target)
        victim = target
    raw = victim.read_bytes()
    spoilt = _cell(raw, rng) if victim.suffix == ".csv" and rng.random() < 0.7 else _bytes(raw, rng)
    victim.write_bytes(spoilt)
    readers: dict[str, Callable[[Path], object]] = {"named": bb.read_models, "store": _store}
    readers |= dict.fromkeys(["models", *formats], bb.read_models)
    reader = readers.get(kind, load_spec if kind == "spec.toml" else _policy)

    def read() -> object:
        try:
            return reader(target)
        finally:
            shutil.rmtree(target.parent, ignore_errors=True)

    return f"{kind}: {victim.name} damaged, {len(raw)} to {len(spoilt)} bytes", read


def _policy(path: Path) -> object:
    """A policy that was read can also act."""
    policy = load_policy(path)
    policy.reset(0)
    policy.act(0)
    return policy


def _store(path: Path) -> object:
    """Runs that were read are those that were written."""
    store = Store.existing(path)
    store.check()
    frame = store.read(("curve", "visits"))
    own = Store.existing(originals() / "store").read(("curve", "visits"))
    if not frame.equals(own.join(frame.select("agent", "run"), on=["agent", "run"], how="semi")):
        raise AssertionError("a damaged store was read as if it were whole, with other numbers")
    return frame


def _cell(raw: bytes, rng: random.Random) -> bytes:
    lines = raw.decode().split("\n")
    i = rng.randrange(len(lines))
    if rng.random() < 0.3:
        lines[i : i + 1] = rng.choice([[], [lines[i]] * 2, [""], [lines[i], lines[0]], [lines[i] + ","]])
    else:
        cells = lines[i].split(",")
        cells[rng.randrange(len(cells))] = rng.choice(_CELLS)
        lines[i] = ",".join(cells)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _bytes(raw: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(raw) + 1)
    many = rng.randint(1, 8)
    return rng.choice(
        [
            lambda: raw[:at],
            lambda: raw[:at] + raw[at + many :],
            lambda: raw[:at] + rng.choice(_WORDS) * rng.choice([1, 1, 3, 3000]) + raw[at:],
            lambda: raw[:at] + bytes(rng.randrange(256) for _ in range(many)) + raw[at + many :],
            lambda: raw[:at] + raw[max(0, at - 30) : at] * many + raw[at:],
            lambda: b"",
            lambda: raw + raw,
            lambda: np.random.default_rng(rng.randrange(10**9)).bytes(200),
        ]
    )()
