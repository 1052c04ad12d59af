"""Model folders: exact round trips, the rules for what rows mean, and an error for everything that can be wrong."""

import numpy as np
import pytest
import scipy.sparse as sp

from beliefbound import MDP, FiniteBelief, cadp, e_max, mmbi, read_models, write_models
from beliefbound.base.errors import FileError, ParameterError
from beliefbound.beliefs import FiniteValues, rows
from beliefbound.planning.compare import compare_memoryless
from support.oracles import random_models

HEADER = "idstatefrom,idaction,idstateto,idoutcome,probability,reward\n"
GOOD = {
    "training.csv": HEADER + "0,0,0,0,0.5,1\n0,0,1,0,0.5,1\n1,0,1,0,1,2\n0,0,1,1,1,1\n1,0,0,1,1,2\n",
    "initial.csv": "idstate,probability\n0,1\n",
    "parameters.csv": "parameter,value\ndiscount,0.9\n",
}


def make(path, **changes):
    """A small good folder with some files replaced (`training=...`) or left out (`training=None`)."""
    path.mkdir(exist_ok=True)
    files = GOOD | {f"{name}.csv": text for name, text in changes.items()}
    for name, text in files.items():
        if text is not None:
            (path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def same(a, b):
    assert type(a) is type(b)
    np.testing.assert_array_equal(a.models.dense(), b.models.dense())
    np.testing.assert_array_equal(a.rewards, b.rewards)
    np.testing.assert_array_equal(a.initial, b.initial)
    if isinstance(a, FiniteBelief):
        np.testing.assert_array_equal(a.weights, b.weights)
        assert a.reward_signal == b.reward_signal
        if a.reward_signal == "bernoulli":
            assert a.reward_range == b.reward_range


@pytest.mark.parametrize("signal", ["known", "unobserved", "deterministic", "bernoulli", "continuous"])
def test_round_trips_are_exact(tmp_path, signal):
    rng = np.random.default_rng(1)
    for i in range(5):
        p, r, w, p0 = random_models(rng, 3, 4, 2, equal_rewards=signal == "known", sparsity=0.4)
        q, x, _, _ = random_models(rng, 5, 4, 2, equal_rewards=True)
        x[:] = r[0]
        range_ = (-1.0, 1.5) if signal == "bernoulli" else None
        knobs = {"reward_signal": signal, "reward_range": range_, "initial": p0}
        training, test = FiniteBelief(p, r, w, **knobs), FiniteBelief(q, x, **knobs)
        true = MDP(p[0], r[1], initial=p0)
        path = write_models(tmp_path / str(i), training, discount=1 / 3, test=test, true=true)
        back = read_models(path)
        same(back.training, training)
        same(back.test, test)
        np.testing.assert_array_equal(back.true.transitions, true.transitions)
        np.testing.assert_array_equal(back.true.rewards, true.rewards)
        np.testing.assert_array_equal(back.initial, p0)
        assert back.discount == 1 / 3
        assert back.notes == ()
        again = write_models(
            tmp_path / f"{i} again", back.training, discount=back.discount, test=back.test, true=back.true
        )
        for file in path.iterdir():
            assert file.read_bytes() == (again / file.name).read_bytes()


def test_sparse_beliefs_round_trip_and_large_folders_are_read_as_sparse(tmp_path, monkeypatch):
    p, r, w, p0 = random_models(np.random.default_rng(2), 3, 6, 2, sparsity=0.9)
    sparse = FiniteBelief([sp.csr_array(x.reshape(12, 6)) for x in p], r, w, reward_signal="unobserved", initial=p0)
    path = write_models(tmp_path / "x", sparse, discount=0.9, true=MDP(p[0], r[0]))
    assert isinstance(read_models(path).training.transitions, np.ndarray)
    monkeypatch.setattr(rows, "SPARSE_BYTES", 0)
    back = read_models(path)
    assert sp.issparse(back.training.transitions)
    assert back.true.is_sparse
    same(back.training, sparse)
    assert cadp(back.training, discount=0.9, horizon=5).value() == pytest.approx(
        cadp(sparse, discount=0.9, horizon=5).value()
    )


def test_columns_are_found_by_name_and_blank_lines_and_spaces_do_not_matter(tmp_path):
    text = "reward, idoutcome ,probability,extra,idstateto,idaction,idstatefrom\r\n"
    text += "1,0,0.5,x,0,0,0\r\n\r\n1,0, 0.5 ,y,1,0,0\r\n2,0,1,,1,0.0,1\r\n1,1,1,,1,0,0\r\n2,1,1,,0,0,1\r\n"
    plain, odd = read_models(make(tmp_path / "a")), read_models(make(tmp_path / "b", training="\ufeff" + text))
    same(plain.training, odd.training)


def test_duplicate_rows_are_summed_with_their_rewards_weighted(tmp_path):
    text = HEADER + "0,0,0,0,0.25,4\n0,0,0,0,0.25,0\n0,0,1,0,0.5,2\n1,0,1,0,1,0\n"
    belief = read_models(make(tmp_path / "a", training=text)).training
    assert belief.transitions[0, 0, 0].tolist() == [0.5, 0.5]
    assert belief.rewards[0, 0, 0] == 2.0


def test_a_state_without_rows_is_absorbing_and_that_is_said(tmp_path):
    text = HEADER + "0,0,1,0,1,1\n0,1,2,0,1,1\n0,0,1,1,1,1\n0,1,2,1,1,1\n1,0,0,1,1,5\n1,1,0,1,1,5\n"
    folder = read_models(make(tmp_path / "a", training=text), absorbing=[2])
    assert folder.training.transitions[:, 2].tolist() == [[[0, 0, 1]] * 2] * 2
    assert folder.training.transitions[0, 1].tolist() == [[0, 1, 0]] * 2
    assert folder.training.rewards[0, 1:].tolist() == [[0, 0], [0, 0]]
    notes = " ".join(folder.notes)
    assert "state 2 has no rows in any model; it is absorbing" in notes
    assert "state 1 has no rows in 1 of 2 models" in notes


def test_slightly_wrong_sums_are_rescaled_and_that_is_said(tmp_path):
    text = GOOD["training.csv"].replace("0,0,0,0,0.5,1", "0,0,0,0,0.5000002,1")
    folder = read_models(make(tmp_path / "a", training=text))
    assert folder.training.transitions[0, 0, 0].sum() == pytest.approx(1.0, abs=1e-15)
    assert "rescaled" in folder.notes[0]
    assert "model 0, state 0, action 0" in folder.notes[0]


def test_what_rewards_reveal_is_read_off_the_rows(tmp_path):
    two = HEADER + "0,0,0,0,{p},{a}\n0,0,1,0,{q},{b}\n1,0,0,0,1,0\n0,0,0,1,0.5,{c}\n0,0,1,1,0.5,{d}\n1,0,0,1,1,0\n"
    cases = [
        ("known", {"p": 0.5, "q": 0.5, "a": 1, "b": 2, "c": 1, "d": 2}),
        ("known", {"p": 0.2, "q": 0.8, "a": 1, "b": 1, "c": 1, "d": 1}),
        ("unobserved", {"p": 0.2, "q": 0.8, "a": 1, "b": 2, "c": 1, "d": 2}),
        ("deterministic", {"p": 0.2, "q": 0.8, "a": 1, "b": 1, "c": 3, "d": 3}),
        ("deterministic", {"p": 0.2, "q": 0.8, "a": 1, "b": 2, "c": 3, "d": 4}),
        ("deterministic", {"p": 0.5, "q": 0.5, "a": 1, "b": 2, "c": 2, "d": 1}),  # equal means, different rewards
    ]
    for i, (signal, numbers) in enumerate(cases):
        folder = read_models(make(tmp_path / str(i), training=two.format(**numbers)))
        assert folder.training.reward_signal == signal
        assert (signal == "known") == (folder.notes == ())
    path = make(tmp_path / "x", training=two.format(**cases[4][1]), test=two.format(**cases[0][1]))
    assert read_models(path).test.reward_signal == "deterministic"  # one signal for the folder
    assert read_models(path).test.signal.on_arrival[1, 0, 0].tolist() == [1.0, 2.0]
    assert read_models(path, reward_signal="unobserved").training.reward_signal == "unobserved"
    told = read_models(path, reward_signal="deterministic")
    assert told.notes == ()
    (path / "parameters.csv").write_text("parameter,value\ndiscount,0.9\nreward_signal,unobserved\n")
    assert read_models(path).training.reward_signal == "unobserved"
    assert read_models(path, reward_signal="deterministic").training.reward_signal == "deterministic"
    (path / "parameters.csv").write_text(
        "parameter,value\ndiscount,0.9\nreward_signal,bernoulli\nreward_low,0\nreward_high,5\n"
    )
    assert read_models(path).training.reward_range == (0.0, 5.0)


def test_weights_are_read(tmp_path):
    folder = read_models(make(tmp_path / "a", weights="idoutcome,weight\n1,0.75\n0,0.25\n"))
    assert folder.training.weights.tolist() == [0.25, 0.75]


def test_the_average_model_averages_rewards_per_transition(tmp_path):
    text = HEADER + "0,0,0,0,0.2,10\n0,0,1,0,0.8,0\n1,0,0,0,1,0\n0,0,0,1,0.6,20\n0,0,1,1,0.4,0\n1,0,0,1,1,0\n"
    folder = read_models(make(tmp_path / "a", training=text))
    assert folder.average.rewards[0, 0] == pytest.approx(0.4 * 15)
    assert folder.training.mean().rewards[0, 0] == pytest.approx((0.2 * 10 + 0.6 * 20) / 2)
    np.testing.assert_allclose(folder.average.transitions, folder.training.mean().transitions)


WRONG = [
    ({"training": None}, ["has no training.csv"]),
    ({"initial": None}, ["has no initial.csv"]),
    ({"parameters": None}, ["has no parameters.csv"]),
    ({"training": ""}, ["training.csv is empty", "idstatefrom"]),
    ({"training": HEADER}, ["training.csv has a header but no rows"]),
    ({"training": "idstatefrom,idaction\n0,0\n"}, ["training.csv has no column 'idstateto'", "idstatefrom, idaction"]),
    ({"training": HEADER.replace("reward", "idaction") + "0,0,0,0,1,0\n"}, ["training.csv"]),
    ({"training": HEADER + "0,0,0,0,1,1\n0,x,0,1,1,1\n"}, ["training.csv, line 3", "idaction is 'x'"]),
    ({"training": HEADER + "0,0,0,0,1,1\n\n0,0,0,1,1,\n"}, ["training.csv, line 4", "reward is empty"]),
    ({"training": HEADER + "0,0,0,0,nan,1\n"}, ["training.csv, line 2", "probability is 'nan'"]),
    ({"training": HEADER + "0,0,0,0,1,inf\n"}, ["training.csv, line 2", "reward is 'inf'"]),
    ({"training": HEADER + "0,0,0,0,-0.5,1\n"}, ["training.csv, line 2", "-0.5", "negative"]),
    ({"training": HEADER + "0,0,0,0,1,1\n0,0,-1,0,1,1\n"}, ["line 3", "idstateto is -1", "whole numbers from 0"]),
    ({"training": HEADER + "0,0.5,0,0,1,1\n"}, ["line 2", "idaction is 0.5"]),
    ({"training": HEADER + "0,0,99999999999,0,1,1\n"}, ["line 2", "idstateto is 99999999999"]),
    ({"training": HEADER + "0,0,0,0,1,1,7\n"}, ["training.csv, line 2 has 7 cells, its header 6; put cells"]),
    ({"training": b"idstatefrom\xff\xfe,\n0"}, ["training.csv"]),
    ({"training": HEADER + "0,0,0,0,1,1\n0,0,0,2,1,1\n"}, ["training.csv", "model 1 appears nowhere", "without gaps"]),
    ({"training": HEADER + "1,1,1,0,1,1\n"}, ["action 0 appears nowhere"]),
    ({"training": HEADER + "0,0,2000000000,0,1,1\n"}, ["state 1 appears nowhere"]),
    (
        {"training": HEADER + "0,0,0,0,1,1\n0,1,0,0,1,1\n0,0,0,1,1,1\n"},
        ["state 0 has no rows for action 1 in model 1", "add rows for model 1, state 0, action 1"],
    ),
    ({"training": HEADER + "0,0,0,0,0.7,1\n"}, ["training.csv", "model 0, state 0, action 0 sum to 0.7"]),
    ({"test": HEADER + "0,0,0,0,1,1\n1,0,1,0,0.9,1\n"}, ["test.csv", "model 0, state 1, action 0 sum to 0.9"]),
    ({"true": "idstatefrom,idaction,idstateto,probability,reward\n0,0,0,2,1\n"}, ["true.csv", "sum to 2"]),
    ({"initial": "idstate,probability\n0,0.5\n"}, ["initial.csv", "sums to 0.5"]),
    ({"initial": "idstate,probability\n0,0.5\n0,0.5\n"}, ["initial.csv", "idstate 0 is given more than once"]),
    ({"initial": "idstate,probability\n7,1\n"}, ["state 2 appears nowhere"]),
    ({"parameters": "parameter,value\ngamma,0.9\n"}, ["parameters.csv has no row 'discount'"]),
    ({"parameters": "parameter,value\ndiscount,1.5\n"}, ["parameters.csv", "discount is 1.5"]),
    ({"parameters": "parameter,value\ndiscount,nan\n"}, ["parameters.csv", "discount is nan"]),
    ({"parameters": "parameter,value\ndiscount,high\n"}, ["parameters.csv", "discount is 'high'"]),
    ({"parameters": "parameter,value\ndiscount,\n"}, ["parameters.csv, line 2"]),
    ({"parameters": "parameter,value\ndiscount,0.9\ndiscount,0.8\n"}, ["line 3", "more than once"]),
    ({"parameters": "parameter,value\ndiscount,0.9\nreward_signal,secret\n"}, ["reward_signal is 'secret'", "known"]),
    (
        {"parameters": "parameter,value\ndiscount,0.9\nreward_signal,bernoulli\nreward_low,0\n"},
        ["reward_low is 0.0 and reward_high is None"],
    ),
    ({"weights": "idoutcome,weight\n0,1\n"}, ["weights.csv has no row for model 1"]),
    ({"weights": "idoutcome,weight\n0,0.5\n1,0.4\n"}, ["weights.csv", "sums to 0.9"]),
    ({"weights": "idoutcome,weight\n0,0.5\n2,0.5\n"}, ["weights.csv", "model 2 does not exist"]),
]


@pytest.mark.parametrize(("changes", "parts"), WRONG, ids=lambda x: str(x)[:60] if isinstance(x, list) else "")
def test_malformed_folders_are_refused_with_place_and_value(tmp_path, changes, parts):
    with pytest.raises(FileError) as caught:
        read_models(make(tmp_path / "x", **changes))
    for part in parts:
        assert part in str(caught.value)


def test_what_is_not_a_folder_is_refused(tmp_path):
    with pytest.raises(FileError, match="does not exist"):
        read_models(tmp_path / "nothing")
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match="not a folder"):
        read_models(tmp_path / "file")
    belief = read_models(make(tmp_path / "good")).training
    with pytest.raises(FileError, match="is a file"):
        write_models(tmp_path / "file", belief, discount=0.9)
    assert (tmp_path / "file").read_text() == "x"


def test_other_parameters_are_noted(tmp_path):
    folder = read_models(make(tmp_path / "x", parameters="parameter,value\ndiscount,0.9\nauthor,someone\n"))
    assert folder.notes == ("parameters.csv: 'author' is not used",)


def test_writing_never_destroys_what_it_does_not_know(tmp_path):
    folder = read_models(make(tmp_path / "source", test=GOOD["training.csv"]))
    target = tmp_path / "deep" / "target"
    write_models(target, folder.training, discount=0.9, test=folder.test)
    (target / "notes.txt").write_text("mine")
    before = {x.name: x.read_bytes() for x in target.iterdir()}
    with pytest.raises(FileError, match="overwrite=True"):
        write_models(target, folder.training, discount=0.5)
    assert {x.name: x.read_bytes() for x in target.iterdir()} == before
    write_models(target, folder.training, discount=0.5, overwrite=True)
    assert (target / "notes.txt").read_text() == "mine"
    assert not (target / "test.csv").exists()
    assert read_models(target).discount == 0.5
    assert [x.name for x in (tmp_path / "deep").iterdir()] == ["target"]
    empty = tmp_path / "empty"
    empty.mkdir()
    same(read_models(write_models(empty, folder.training, discount=0.9)).training, folder.training)


def test_what_the_format_cannot_say_is_refused(tmp_path):
    p, r, w, p0 = random_models(np.random.default_rng(3), 2, 3, 2)
    belief = FiniteBelief(p, r, w, reward_signal="unobserved")
    with pytest.raises(ParameterError, match="start distribution"):
        write_models(tmp_path / "x", belief, discount=0.9)
    other = FiniteBelief(p, r, w, reward_signal="deterministic")
    with pytest.raises(ParameterError, match="signal"):
        write_models(tmp_path / "x", belief, discount=0.9, initial=p0, test=other)
    with pytest.raises(ParameterError, match="one size"):
        write_models(tmp_path / "x", belief, discount=0.9, initial=0, true=MDP([[[1.0]]], [[1.0]]))
    partial = FiniteBelief(
        p, r, w, reward_signal="unobserved", initial=p0, available=[[True, False], [True, True], [True, True]]
    )
    with pytest.raises(ParameterError, match="differ in whether state 0 offers action 1"):
        write_models(tmp_path / "x", belief, discount=0.9, initial=p0, test=partial)
    assert list(tmp_path.iterdir()) == []


def swimmers(rng, count, n_states=8):
    """RiverSwim-like models: left is sure and pays a little, right succeeds with an unknown chance, the end pays."""
    p, r = np.zeros((count, n_states, 2, n_states)), np.zeros((count, n_states, 2))
    for m in range(count):
        back, stay, on = rng.dirichlet([1.0, 2.0, 3.0])
        for s in range(n_states):
            p[m, s, 0, max(s - 1, 0)] = 1.0
            r[m, s, 0] = 5.0
            p[m, s, 1, max(s - 1, 0)] += back
            p[m, s, 1, s] += stay
            p[m, s, 1, min(s + 1, n_states - 1)] += on
        r[m, -1, 1] = 100.0 * on
    return p, r


def test_the_comparison_of_memoryless_planners(tmp_path):
    rng = np.random.default_rng(4)
    knobs = {"reward_signal": "deterministic", "initial": np.full(8, 1 / 8)}
    training, test = FiniteBelief(*swimmers(rng, 20), **knobs), FiniteBelief(*swimmers(rng, 50), **knobs)
    folder = read_models(write_models(tmp_path / "swim", training, discount=0.9, test=test))
    rows = compare_memoryless(
        folder.training, folder.test, discount=folder.discount, horizons=[5, 20], restarts=True, expected=folder.average
    )
    table = {(row.method, row.horizon): row for row in rows}
    assert len(table) == 10
    for horizon in (5, 20):
        value = {
            name: table[name, horizon].training for name in ("expected MDP", "MMBI", "CADP", "CADP, restarts", "oracle")
        }
        assert value["MMBI"] <= value["CADP"] + 1e-9
        assert value["CADP"] <= value["CADP, restarts"] + 1e-9 <= value["oracle"] + 2e-9
        assert value["expected MDP"] <= value["CADP, restarts"] + 1e-9
        assert value["MMBI"] == pytest.approx(mmbi(training, discount=0.9, horizon=horizon).value())
        oracle = e_max(test, discount=0.9, horizon=horizon).values @ test.initial
        assert table["oracle", horizon].test == pytest.approx(oracle)
        assert table["CADP", horizon].test <= oracle
    assert compare_memoryless(training, discount=0.9, horizons=[3])[0].test is None
    with pytest.raises(ParameterError, match="states"):
        compare_memoryless(training, FiniteBelief([[[[1.0]]]], [[[1.0]]]), discount=0.9, horizons=[3])


def test_a_transition_with_several_rewards_is_noise_and_rewards_on_arrival_round_trip(tmp_path):
    noisy = HEADER + "0,0,0,0,0.5,1\n0,0,0,0,0.5,2\n0,0,0,1,1,3\n"
    folder = read_models(make(tmp_path / "noisy", training=noisy, initial="idstate,probability\n0,1\n"))
    assert folder.training.reward_signal == "continuous"
    rng = np.random.default_rng(0)
    p, _, w, p0 = random_models(rng, 3, 2, 2)
    belief = FiniteBelief(p, rng.random((3, 2, 2, 2)), w, reward_signal="deterministic", initial=p0)
    back = read_models(write_models(tmp_path / "written", belief, discount=0.9)).training
    assert np.array_equal(back.signal.on_arrival, belief.signal.on_arrival)
    assert np.allclose(back.rewards, belief.rewards, atol=1e-15)


@pytest.mark.parametrize("signal", ["known", "bernoulli"])
def test_rewards_on_arrival_of_every_signal_come_back_bit_by_bit(tmp_path, signal):
    rng = np.random.default_rng(8)
    p, _, w, p0 = random_models(rng, 3, 2, 2)
    paid = rng.random((3, 2, 2, 2))
    if signal == "known":
        paid[:] = paid[0]
    belief = FiniteBelief(p, paid, w, reward_signal=signal, initial=p0)
    back = read_models(write_models(tmp_path / "m", belief, discount=0.9)).training
    assert back.reward_signal == signal
    assert np.array_equal(back.signal.on_arrival, belief.signal.on_arrival)
    assert np.allclose(back.rewards, belief.rewards, rtol=1e-15)


def test_a_signal_without_columns_in_the_format_is_refused(tmp_path):
    signal = FiniteValues([0.0, 1.0, 2.0], np.full((2, 1, 1, 3), 1 / 3))
    belief = FiniteBelief([[[[1.0]]]] * 2, None, reward_signal=signal, initial=0)
    with pytest.raises(ParameterError, match="training has a finite reward signal"):
        write_models(tmp_path / "m", belief, discount=0.9)


NAMED = {
    "training": HEADER + "cold,<wait>,cold,0,0.5,1\ncold,<wait>,hot,0,0.5,1\nhot,<wait>,hot,0,1,2\n"
    "cold,<wait>,hot,1,1,1\nhot,<wait>,cold,1,1,2\n",
    "initial": "idstate,probability\ncold,1\n",
}


def test_names_in_id_columns_mean_the_same_as_numbers_and_are_carried_on(tmp_path):
    plain, named = read_models(make(tmp_path / "plain")), read_models(make(tmp_path / "named", **NAMED))
    same(named.training, plain.training)
    assert plain.training.states is None
    assert (named.training.states, named.training.actions) == (("cold", "hot"), ("<wait>",))
    after = named.training.update(0, 0, None, 1)
    for thing in (named.average, after, after.sample(3, 0), after.mean(), FiniteBelief.from_mdps([named.average])):
        assert (thing.states, thing.actions) == (("cold", "hot"), ("<wait>",))
    again = read_models(write_models(tmp_path / "again", named.training, discount=0.9))
    same(again.training, named.training)
    assert (again.training.states, again.training.actions) == (("cold", "hot"), ("<wait>",))


def test_tables_of_names_number_them(tmp_path):
    listed = make(tmp_path / "a", states="name,idstate\nhot,1\ncold,0\n", actions="idaction,name\n0,wait\n")
    assert read_models(listed).training.states == ("cold", "hot")
    turned = read_models(make(tmp_path / "b", **NAMED, states="idstate,name\n0,hot\n1,cold\n2,never\n"))
    assert turned.training.states == ("hot", "cold", "never")
    assert turned.initial.tolist() == [0.0, 1.0, 0.0]
    assert any("state never has no rows" in note for note in turned.notes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"states": "idstate,name\n0,cold\n2,hot\n"}, "states.csv: idstate must be each of 0 to 1 once"),
        ({"states": "idstate,name\n0,cold\n1,cold\n"}, "states.csv, line 3: the name 'cold' is given more than once"),
        ({"states": "idstate,name\n0,cold\n1,\n"}, "states.csv, line 3: name is empty"),
        (
            {"states": "idstate,name\n0,cold\n"},
            "training.csv, line 4: idstatefrom is 1, but the names of states end at 0",
        ),
        (
            {**NAMED, "states": "idstate,name\n0,cold\n1,warm\n"},
            "training.csv, line 3: idstateto is 'hot', which is not",
        ),
        ({**NAMED, "initial": "idstate,probability\n,1\n"}, "initial.csv, line 2: idstate is empty"),
        ({"training": GOOD["training.csv"].replace("1,0,1,0,1,2", "one,0,1,0,1,2")}, "line 4: idstatefrom is 'one'"),
    ],
)
def test_names_that_do_not_fit_are_refused(tmp_path, changes, message):
    with pytest.raises(FileError, match=message):
        read_models(make(tmp_path / "x", **changes))
