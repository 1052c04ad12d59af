"""Policies survive their files, act as before, and no file can do harm."""

import copy
import json
import pickle
import zipfile

import numpy as np
import pytest

from beliefbound.base.errors import BeliefboundError, FileError, PolicyError
from beliefbound.bounds.policy_files import load_policy
from beliefbound.policy import MemorylessPolicy, StationaryPolicy
from support.policies import KINDS, ONE_OF_EACH, adaptive, policy_of, walk
from support.tiers import tiers

LEARNING = [kind for kind in KINDS if not kind.startswith(("stationary", "memoryless"))]


@pytest.mark.parametrize("kind", tiers(KINDS, *ONE_OF_EACH))
def test_a_loaded_policy_acts_exactly_like_the_saved_one(kind, tmp_path):
    """A thousand steps of each, a fifth of them not as advised."""
    policy, path = policy_of(kind), tmp_path / "policy"
    policy.save(path)
    loaded = load_policy(path)
    assert type(loaded) is type(policy)
    assert loaded == policy
    assert hash(loaded) == hash(policy)
    assert (loaded.n_states, loaded.n_actions, loaded.horizon) == (policy.n_states, policy.n_actions, policy.horizon)
    steps = policy.horizon or 60
    for noise in range(1000 // steps):
        assert walk(loaded, steps, seed=1, noise=noise, stray=0.2) == walk(
            policy, steps, seed=1, noise=noise, stray=0.2
        )
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_policies_that_differ_are_not_equal(tmp_path):
    policies = [policy_of(kind) for kind in KINDS]
    for i, one in enumerate(policies):
        for j, other in enumerate(policies):
            assert (one == other) == (i == j)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in LEARNING])
def test_tables_can_be_pickled_and_copied(kind):
    policy = policy_of(kind)
    policy.reset(1)
    for other in (pickle.loads(pickle.dumps(policy)), copy.copy(policy), copy.deepcopy(policy)):
        assert other == policy
        assert hash(other) == hash(policy)
        with pytest.raises(AttributeError, match="frozen"):
            other._actions = None
        assert walk(other, 30, seed=3, noise=1) == walk(policy, 30, seed=3, noise=1)


@pytest.mark.parametrize("kind", ["settled", "looks ahead"])
def test_adaptive_policies_can_be_pickled_and_copied(kind):
    policy = policy_of(kind)
    for other in (pickle.loads(pickle.dumps(policy)), copy.copy(policy), copy.deepcopy(policy)):
        assert other == policy
        assert walk(other, 30, seed=3, noise=1) == walk(policy, 30, seed=3, noise=1)


def test_the_json_of_a_table_is_the_documented_one(tmp_path):
    path = tmp_path / "policy.json"
    MemorylessPolicy([[1, 0], [0, 2]]).save(path, state_names=["wet", "dry"], action_names=["wait", "sow", "reap"])
    assert json.loads(path.read_text()) == {
        "format": "beliefbound policy",
        "version": 1,
        "kind": "memoryless",
        "n_states": 2,
        "n_actions": 3,
        "horizon": 2,
        "actions": [[1, 0], [0, 2]],
        "state_names": ["wet", "dry"],
        "action_names": ["wait", "sow", "reap"],
    }
    assert load_policy(path) == MemorylessPolicy([[1, 0], [0, 2]])
    StationaryPolicy(probabilities=[[0.25, 0.75]]).save(path)
    assert json.loads(path.read_text()) == {
        "format": "beliefbound policy",
        "version": 1,
        "kind": "stationary",
        "n_states": 1,
        "n_actions": 2,
        "horizon": None,
        "probabilities": [[0.25, 0.75]],
    }
    with pytest.raises(PolicyError, match="3 state names for 2 states"):
        StationaryPolicy([0, 1]).save(path, state_names=["a", "b", "c"])
    with pytest.raises(PolicyError, match="1 action names for 2 actions"):
        StationaryPolicy([0, 1]).save(path, action_names=["a"])


GOOD = {
    "format": "beliefbound policy",
    "version": 1,
    "kind": "stationary",
    "n_states": 2,
    "n_actions": 2,
    "horizon": None,
    "actions": [1, 0],
}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"format": "recipe"}, "not a policy file"),
        ({"version": 2}, "version 2; this program reads version 1"),
        ({"version": True}, "version True"),
        ({"kind": "quantum"}, "kind is 'quantum'"),
        ({"kind": None}, "which kind"),
        ({"n_states": 3}, "n_states is 3, but the choices have 2"),
        ({"n_states": 10**30}, "n_states is"),
        ({"n_states": "2"}, "n_states is '2'"),
        ({"n_actions": 1}, "n_actions is 1, but the choices have 2"),
        ({"horizon": 5}, "horizon is 5"),
        ({"actions": [1, -1]}, "ids run from 0"),
        ({"actions": [1, 0.5]}, "whole numbers"),
        ({"actions": [1, 10**40]}, "actions"),
        ({"actions": [[1], [0, 1]]}, "rectangular"),
        ({"actions": [[1, 0]]}, r"shape \(1, 2\)"),
        ({"actions": []}, "shape|whole numbers"),
        ({"actions": {"0": 1}}, "whole numbers"),
        ({"actions": "10"}, "whole numbers"),
        ({"actions": None}, "give either actions or probabilities"),
        ({"probabilities": [[0.5, 0.5]] * 2}, "give either actions or probabilities"),
        ({"surprise": 1}, "unknown entry 'surprise'"),
        ({"state_names": ["a"]}, "1 state names for 2 states"),
        ({"state_names": ["a", "a"]}, "used twice"),
        ({"state_names": "ab"}, "not a list of names"),
        ({"action_names": [1, 2]}, "not a list of names"),
    ],
)
def test_a_bad_table_file_is_named_with_its_fault(change, fault, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(GOOD))
    assert load_policy(path) == StationaryPolicy([1, 0])
    path.write_text(json.dumps(GOOD | change))
    with pytest.raises(FileError, match=f"mine.json.*({fault})"):
        load_policy(path)


@pytest.mark.parametrize(
    ("probabilities", "fault"),
    [
        ([[0.5, 0.6], [1.0, 0.0]], "sums to 1.1"),
        ([[-0.5, 1.5], [1.0, 0.0]], "negative"),
        ([[None, 1.0], [1.0, 0.0]], "not a number"),
        ([[0.5, 0.5, 0.0], [1.0, 0.0]], "rectangular"),
        ([[1e400, 0.0], [1.0, 0.0]], "mine.json"),
    ],
)
def test_bad_chances_are_named(probabilities, fault, tmp_path):
    path = tmp_path / "mine.json"
    content = {key: value for key, value in GOOD.items() if key != "actions"} | {"probabilities": probabilities}
    path.write_text(json.dumps(content))
    with pytest.raises(FileError, match=fault):
        load_policy(path)


@pytest.mark.parametrize("missing", [key for key in GOOD if key not in ("format", "version", "kind")])
def test_a_missing_entry_is_named(missing, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({key: value for key, value in GOOD.items() if key != missing}))
    with pytest.raises(FileError, match=f"mine.json.*{missing}"):
        load_policy(path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b"nan", b"PK", b"PK\x03\x04" * 9])
def test_files_that_are_no_policies_are_refused(content, tmp_path):
    path = tmp_path / "mine"
    path.write_bytes(content)
    with pytest.raises(FileError, match="mine"):
        load_policy(path)


def test_files_that_cannot_be_read_or_written_are_named(tmp_path):
    with pytest.raises(FileError, match="cannot read.*nowhere"):
        load_policy(tmp_path / "nowhere")
    with pytest.raises(FileError, match="cannot read"):
        load_policy(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot write"):
        policy_of("settled").save(tmp_path / "file" / "policy.npz")


def rewritten(source, target, **changes):
    """The archive `source` with some arrays changed, or left out where the change is `None`."""
    with np.load(source) as archive:
        arrays = {name: archive[name] for name in archive.files} | changes
    with target.open("wb") as file:
        np.savez(file, **{name: array for name, array in arrays.items() if array is not None})


def header(**changes):
    content = {"format": "beliefbound policy", "version": 1, "kind": "adaptive"} | changes
    return np.frombuffer(json.dumps(content).encode(), dtype=np.uint8)


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """A file of every kind of policy that learns."""
    folder = tmp_path_factory.mktemp("archives")
    for kind in LEARNING:
        policy_of(kind).save(folder / kind)
    return folder


@pytest.mark.parametrize(
    ("kind", "changes", "fault"),
    [
        ("settled", {"header": None}, "no header"),
        ("settled", {"header": header(version=7)}, "version 7"),
        ("settled", {"header": header(kind="cursed")}, "unknown kind 'cursed'"),
        ("settled", {"header": header(format="?")}, "not a policy file"),
        ("settled", {"header": np.zeros(3)}, "no header"),
        ("settled", {"after": None}, "no array 'after'"),
        ("settled", {"extra": np.zeros(3)}, "unknown array 'extra'"),
        ("settled", {"action": np.array(["a"])}, "only plain numbers"),
        ("settled", {"action": np.array([None, {}], dtype=object)}, "only plain numbers|no array"),
        ("settled", {"action": np.zeros(1, dtype=[("x", "i4")])}, "only plain numbers"),
        ("settled", {"state": np.zeros(5, dtype=np.int64)}, "nodes where other arrays have 5"),
        ("settled", {"pool_first": np.array([0, 5, 3])}, "does not divide the lines"),
        ("settled", {"horizon": np.int64(0)}, "at least one decision"),
        ("settled", {"roots": np.array([0, 0])}, "one node for each start state"),
        ("settled", {"available": np.zeros((3, 2), dtype=bool)}, "without actions"),
        ("settled", {"first": np.zeros((3, 3), dtype=np.int64)}, "'first' does not number"),
        ("looks ahead", {"stop": np.float64(np.nan)}, "'stop'"),
        ("looks ahead", {"discount": np.float64(1.5)}, "'discount' is 1.5"),
        ("looks ahead", {"depth": np.int64(10**15)}, "'depth' is"),
        ("looks ahead", {"keys": np.zeros(3)}, "'keys' is float64"),
        ("particles", {"share": np.array([0.5, 0.1])}, "does not fall to 0"),
        ("particles", {"particles": np.array([10**12, 32])}, "GiB"),
        ("particles", {"particles": np.array([1, 32])}, "'particles'"),
        ("particles", {"start": np.array([0.5, 0.1, 0.1])}, "sums to 0.7"),
        ("particles", {"belief_concentration": np.zeros((3, 2, 3))}, "no possible next state"),
        ("particles", {"belief_concentration": np.full((3, 2, 3), np.nan)}, "not numbers"),
        ("particles", {"seed": np.uint64(2**64 - 1)}, "'seed'"),
        ("particles, rewards to learn", {"belief_reward_alpha": np.zeros((3, 2))}, "must be above 0"),
        ("particles, rewards to learn", {"belief_reward_low": np.float64(2.0)}, "low must be below high"),
    ],
)
def test_a_bad_archive_is_named_with_its_fault(kind, changes, fault, archives, tmp_path):
    path = tmp_path / "mine.npz"
    rewritten(archives / kind, path, **changes)
    with pytest.raises(FileError, match=f"mine.npz.*({fault})"):
        load_policy(path)


def wrong_values(array):
    """For each kind of array, values that may be out of place."""
    if array.dtype.kind == "f":
        return [np.nan, np.inf, -np.inf, -1.0, 0.0, 2.0, 1e299, 1e308]
    if array.dtype.kind == "b":
        return [True, False]
    limits = np.iinfo(array.dtype)
    return [limits.min, limits.max, 0, 1, 2, 100]


@pytest.mark.parametrize("kind", tiers(LEARNING, "settled", "particles", "mixed", "alpha vectors"))
def test_no_change_of_an_array_makes_a_policy_do_harm(kind, archives, tmp_path):
    """Each array in turn, changed in values, type and shape: refused, or it still plays actions that there are."""
    rng, path, refused = np.random.default_rng(7), tmp_path / "mine.npz", 0
    with np.load(archives / kind) as archive:
        arrays = {name: archive[name] for name in archive.files if name != "header"}
    for name, array in arrays.items():
        changed = [array[None], array.astype(np.float32), np.concatenate([array.ravel()] * 2)]
        for value in wrong_values(array):
            other = array.copy()
            if other.size:
                other.flat[rng.integers(other.size)] = value
            changed.append(other)
        for other in changed:
            rewritten(archives / kind, path, **{name: other})
            try:
                policy = load_policy(path)
            except FileError:
                refused += 1
                continue
            try:
                actions = walk(policy, 12, seed=0, noise=0, stray=0.3)
            except BeliefboundError:
                continue
            assert set(actions) <= set(range(policy.n_actions))
    assert refused > 5 * len(arrays)


@pytest.mark.parametrize("kind", tiers(["looks ahead", "particles"], "particles"))
def test_a_damaged_archive_is_refused_or_whole(kind, archives, tmp_path):
    """Bytes changed or cut off anywhere: never anything but a `FileError`, or the policy itself."""
    rng, path = np.random.default_rng(8), tmp_path / "mine.npz"
    raw, policy = (archives / kind).read_bytes(), load_policy(archives / kind)
    for i in range(120):
        damaged = bytearray(raw)
        if i % 3 == 0:
            damaged = damaged[: rng.integers(len(raw))]
        else:
            damaged[rng.integers(len(raw))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            found = load_policy(path)
        except FileError:
            continue
        assert found == policy


def test_an_archive_that_lies_about_its_size_is_refused_before_memory_is_asked_for(archives, tmp_path):
    path, shape = tmp_path / "mine.npz", b"{'descr': '<i4', 'fortran_order': False, 'shape': (1000000000000,), }"
    text = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + shape.ljust(117) + b"\n"
    with zipfile.ZipFile(archives / "settled") as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            target.writestr(name, text + b"\x00" * 8 if name == "action.npy" else source.read(name))
    with pytest.raises(FileError, match="mine.npz.*action.*not what its bytes hold"):
        load_policy(path)


@pytest.mark.parametrize("use", ["save", "detach"])
def test_a_policy_that_was_used_or_detached_keeps_what_it_was(use, tmp_path):
    """What the search adds later is not in it."""
    policy, certifier = adaptive("bernoulli", stop=0.5)
    same, _ = adaptive("bernoulli", stop=0.5)
    if use == "save":
        policy.save(tmp_path / "before.npz")
    else:
        policy.detach()
    certifier.reopen()
    certifier.core_nodes = 300
    certifier.grow(300)
    certifier.freeze_values()
    policy.save(tmp_path / "after.npz")
    assert load_policy(tmp_path / "after.npz") == policy == same
