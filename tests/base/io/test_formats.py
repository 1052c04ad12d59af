"""POMDPX, Cassandra's `.pomdp` and arrays of draws: written and read back, read as other people write them, refused."""

import contextlib
import re

import numpy as np
import pytest

from beliefbound import FiniteBelief, read_models, write_models
from beliefbound.base.errors import BeliefboundError, FileError, ParameterError
from support.command_line import command
from support.oracles import random_models

NAMES = {"states": ("low", "high", "gone"), "actions": ("wait", "burn"), "model_names": ("dry-1", "wet.2")}


def same(a, b, *, names=True):
    np.testing.assert_array_equal(a.transitions, b.transitions)
    np.testing.assert_array_equal(a.rewards, b.rewards)
    np.testing.assert_array_equal(a.initial, b.initial)
    assert a.reward_signal == b.reward_signal
    if names:
        assert (a.states, a.actions, a.model_names) == (b.states, b.actions, b.model_names)


def belief_of(seed, signal, *, arrival=False, names=True, initial=1):
    p, r, w, _ = random_models(np.random.default_rng(seed), 2, 3, 2, equal_rewards=signal == "known", sparsity=0.3)
    if arrival:
        r = np.where(p > 0, np.random.default_rng(seed).random((1, 3, 2, 3)), 0.0)
    return FiniteBelief(p, r, w, reward_signal=signal, initial=initial, **(NAMES if names else {}))


@pytest.mark.parametrize("ending", [".pomdpx", ".npz", ".pomdp", ""])
@pytest.mark.parametrize("kind", ["known", "unobserved", "arrival", "unnamed"])
def test_what_is_written_is_read_back_bit_by_bit(tmp_path, ending, kind):
    signal = "unobserved" if kind == "unobserved" else "known"
    belief = belief_of(3, signal, arrival=kind == "arrival", names=kind != "unnamed")
    if ending == ".pomdp" and kind != "unnamed":
        names = {"states": belief.states, "actions": belief.actions, "model_names": ("dry-1", "wet-2")}
        belief = FiniteBelief.of(
            belief.models, belief.weights, reward_signal=belief.signal, initial=belief.initial, **names
        )
    path = write_models(tmp_path / f"models{ending}", belief, discount=1 / 3)
    back = read_models(path)
    same(belief, back.training, names=(ending, kind) != (".pomdp", "unnamed"))
    assert back.discount == 1 / 3
    if ending == ".pomdp":  # weights are multiplied by the chance of the start state, which is 1 here
        np.testing.assert_allclose(back.training.weights, belief.weights, rtol=1e-15)
    else:
        np.testing.assert_array_equal(back.training.weights, belief.weights)
    np.testing.assert_allclose(back.average.transitions, belief.mean().transitions)


def test_from_folder_to_folder_through_every_format(tmp_path):
    belief = belief_of(5, "unobserved")
    write_models(tmp_path / "a", belief, discount=0.9)
    for step, (source, target) in enumerate([("a", "b.pomdpx"), ("b.pomdpx", "c.npz"), ("c.npz", "d")]):
        assert step < 3
        held = read_models(tmp_path / source)
        write_models(tmp_path / target, held.training, discount=held.discount)
    same(belief, read_models(tmp_path / "d").training)
    assert (tmp_path / "d" / "models.csv").read_text().splitlines()[1] == "0,dry-1"


def test_draws_keep_every_signal_and_words_are_not_pickled(tmp_path):
    p, r, w, p0 = random_models(np.random.default_rng(1), 3, 2, 2)
    for signal, extra in (("bernoulli", {"reward_range": (-1.0, 2.0)}), ("deterministic", {})):
        belief = FiniteBelief(p, r, w, reward_signal=signal, initial=p0, **extra)
        path = write_models(tmp_path / f"{signal}.npz", belief, discount=0.5)
        back = read_models(path).training
        same(belief, back)
        assert back.reward_range == belief.reward_range
        with pytest.raises(ParameterError, match="tell models apart"):
            write_models(tmp_path / "x.pomdpx", belief, discount=0.5)
    np.savez(tmp_path / "plain.npz", transitions=p, rewards=r[0], discount=0.9, initial=1, states=["wet", "dry"])
    held = read_models(tmp_path / "plain.npz")
    assert held.training.states == ("wet", "dry")
    assert held.training.initial.tolist() == [0.0, 1.0]
    np.savez(tmp_path / "bad.npz", transitions=p, rewards=r, discount=0.9, states=np.array([{}, {}], dtype=object))
    with pytest.raises(FileError, match="only plain numbers and words"):
        read_models(tmp_path / "bad.npz")
    for changes, message in (
        ({"transitions": p[0]}, "3 axes; expected numbers of 4"),
        ({"transitions": 0.9 * p}, "draw 0, state 0, action 0 sum to 0.9"),
        ({"rewards": r[:, :1]}, "rewards have shape"),
        ({"discount": 1.5}, "between 0 and 1"),
        ({"discount": np.nan}, "not numbers up to 1e300"),
        ({"weights": [0.5, 0.5]}, "one for each of 3 draws"),
        ({"initial": 7}, "a state from 0 to 1"),
        ({"states": ["a"]}, "expected 2 words"),
        ({"states": ["a", "a"]}, "'a' is used twice"),
        ({"gamma": 0.9}, "unknown array 'gamma'"),
        ({"reward_signal": "loud"}, "choose one of"),
    ):
        np.savez(tmp_path / "bad.npz", **({"transitions": p, "rewards": r, "discount": 0.9} | changes))
        with pytest.raises(FileError, match=re.escape(message)) as error:
            read_models(tmp_path / "bad.npz")
        assert "bad.npz" in str(error.value)


# Two experts on a finch: written as people write POMDPX by hand: single entries, wildcards, later ones count.
FINCH = """<?xml version='1.0' encoding='ISO-8859-1'?>
<pomdpx version='0.1' id='finch' xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'>
<Description>Two &lt;experts&gt;</Description>
<Discount>0.900000</Discount>
<Variable>
<StateVar vnamePrev="bird_0" vnameCurr="bird_1" fullyObs="true"><ValueEnum>Low High</ValueEnum></StateVar>
<StateVar vnamePrev="rain_0" vnameCurr="rain_1" fullyObs="true"><NumValues>2</NumValues></StateVar>
<StateVar vnamePrev="model_0" vnameCurr="model_1"><ValueEnum>M1 M2</ValueEnum></StateVar>
<ActionVar vname="act"><ValueEnum>DN FG</ValueEnum></ActionVar>
<ObsVar vname="o"><ValueEnum>o</ValueEnum></ObsVar>
<RewardVar vname="gain"/>
</Variable>
<InitialStateBelief>
<CondProb><Var>bird_0</Var><Parent>null</Parent><Parameter type = "TBL">
<Entry><Instance> - </Instance><ProbTable>1 0</ProbTable></Entry></Parameter></CondProb>
<CondProb><Var>rain_0</Var><Parent>null</Parent><Parameter>
<Entry><Instance>s1</Instance><ProbTable>1.0</ProbTable></Entry></Parameter></CondProb>
<CondProb><Var>model_0</Var><Parent>null</Parent><Parameter type="TBL">
<Entry><Instance>-</Instance><ProbTable>uniform</ProbTable></Entry></Parameter></CondProb>
</InitialStateBelief>
<StateTransitionFunction>
<CondProb><Var>bird_1</Var><Parent>act bird_0 model_0 rain_1</Parent><Parameter type="TBL">
<Entry><Instance>* * * * -</Instance><ProbTable>0.5 0.5</ProbTable></Entry>
<Entry><Instance>FG - M2 s0 -</Instance><ProbTable>0.2 0.8
 0.1 0.9</ProbTable></Entry>
<Entry><Instance>DN Low M1 * Low</Instance><ProbTable>0.99</ProbTable></Entry>
<Entry><Instance>DN Low M1 * High</Instance><ProbTable>0.01</ProbTable></Entry></Parameter></CondProb>
<CondProb><Var>rain_1</Var><Parent>rain_0</Parent><Parameter type="TBL">
<Entry><Instance>- -</Instance><ProbTable>0.7 0.3 0.4 0.6</ProbTable></Entry></Parameter></CondProb>
<CondProb><Var>model_1</Var><Parent>model_0</Parent><Parameter type="TBL">
<Entry><Instance>- -</Instance><ProbTable>identity</ProbTable></Entry></Parameter></CondProb>
</StateTransitionFunction>
<ObsFunction><CondProb><Var>o</Var><Parent>model_1</Parent><Parameter type="TBL">
<Entry><Instance>* o</Instance><ProbTable>1</ProbTable></Entry></Parameter></CondProb></ObsFunction>
<RewardFunction>
<Func><Var>gain</Var><Parent>act bird_0</Parent><Parameter type="TBL">
<Entry><Instance>DN -</Instance><ValueTable>0 +20</ValueTable></Entry>
<Entry><Instance>FG -</Instance><ValueTable>-5 +15</ValueTable></Entry></Parameter></Func>
<Func><Var>gain</Var><Parent>rain_0</Parent><Parameter type="TBL">
<Entry><Instance>s1</Instance><ValueTable>1e-1</ValueTable></Entry></Parameter></Func>
</RewardFunction>
</pomdpx>
"""


def test_pomdpx_as_people_write_it(tmp_path):
    (tmp_path / "finch.pomdpx").write_text(FINCH)
    held = read_models(tmp_path / "finch.pomdpx")
    belief = held.training
    assert belief.states == ("Low,s0", "Low,s1", "High,s0", "High,s1")
    assert (belief.actions, belief.model_names) == (("DN", "FG"), ("M1", "M2"))
    assert belief.reward_signal == "known"
    assert belief.weights.tolist() == [0.5, 0.5]
    assert belief.initial.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert held.discount == 0.9
    np.testing.assert_allclose(belief.rewards[0], [[0, -5], [0.1, -4.9], [20, 15], [20.1, 15.1]])
    # From Low in the wet (s1): dry next with 0.4; then FG under M2 works with 0.8, and else it is a coin.
    np.testing.assert_allclose(belief.transitions[1, 1, 1], [0.4 * 0.2, 0.6 * 0.5, 0.4 * 0.8, 0.6 * 0.5])
    np.testing.assert_allclose(belief.transitions[0, 0, 0], [0.7 * 0.99, 0.3 * 0.99, 0.7 * 0.01, 0.3 * 0.01])


BOMB = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><pomdpx>&b;</pomdpx>'
SECRET = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]><pomdpx>&a;</pomdpx>'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (None, BOMB, "declares its own document type"),
        (None, SECRET, "declares its own document type"),
        (None, "", "is no XML"),
        (None, "<pomdpx>", "is no XML"),
        (None, "<html></html>", "is a <html> document"),
        ("0.900000", "much", "line 4, <Discount>: 'much' is not a number"),
        ("0.900000", "1e999", "'1e999' is not a number up to 1e300"),
        ("0.900000", "2", "between 0 and 1"),
        ("<Discount>0.900000</Discount>", "", "needs one <Discount>, has 0"),
        ("<NumValues>2<", "<NumValues>999999999999<", "give a number of values"),
        ("<NumValues>2<", "<NumValues>900000<", "too large to be written out"),
        ("<NumValues>2<", "<NumValues>two<", "line 7, <NumValues>: is 'two'"),
        ("<NumValues>2</NumValues>", "", "needs either <ValueEnum> or <NumValues>"),
        ("Low High", "Low Low", "each of them once"),
        ("Low High", "Low *", "'*' and '-' are no names"),
        ("<ProbTable>0.99<", "<ProbTable>0.98<", "bird_1 given act = DN, bird_0 = Low, model_0 = M1, rain_1 = s0"),
        ("<ProbTable>0.99<", "<ProbTable>-0.99<", "negative probability"),
        ("0.7 0.3 0.4 0.6", "0.7 0.3 0.4", "has 3 numbers; the instance asks for 4"),
        ("* * * * -", "* * * -", "has 4 words for the 5 variables"),
        ("FG - M2", "FG - M9", "'M9' is no value of model_0"),
        ("act bird_0 model_0 rain_1", "act bird_0 moon_0 rain_1", "'moon_0' cannot stand here"),
        ("identity", "0.9 0.1 0.0 1.0", "the hidden variable model_0 changes its value"),
        ("<Parent>model_0</Parent>", "<Parent>rain_0</Parent>", "the hidden variable model_0 changes its value"),
        ("<Parameter>", '<Parameter type="DD">', "only tables (TBL) are read"),
        ('vnameCurr="bird_1" fullyObs="true"', 'vnameCurr="bird_1"', "the hidden variable bird_0 changes its value"),
        ('fullyObs="true"', 'fullyObs="maybe"', "fullyObs is 'maybe'"),
        ("<RewardVar vname=\"gain\"/>", "", "has no <RewardVar>"),
        ("<Var>gain</Var>", "<Var>pain</Var>", "'pain' is no reward variable"),
        ("+20", "1e308", "not a number up to 1e300"),
        ("<RewardFunction>", "<Bonus/><RewardFunction>", "is no section of the format"),
        ("</InitialStateBelief>", "<CondProb><Var>bird_0</Var><Parent>null</Parent><Parameter><Entry><Instance>-"
         "</Instance><ProbTable>1 0</ProbTable></Entry></Parameter></CondProb></InitialStateBelief>",
         "bird_0 is given twice"),
    ],
)  # fmt: skip
def test_pomdpx_that_is_refused_with_the_place_and_the_reason(tmp_path, old, new, message):
    assert old is None or old in FINCH
    (tmp_path / "x.pomdpx").write_text(new if old is None else FINCH.replace(old, new))
    with pytest.raises(FileError, match=re.escape(message)) as error:
        read_models(tmp_path / "x.pomdpx")
    assert "x.pomdpx" in str(error.value)


def test_an_observation_that_tells_about_the_model_is_refused_and_one_that_does_not_is_left_out(tmp_path):
    text = FINCH.replace('vname="o"><ValueEnum>o<', 'vname="o"><ValueEnum>o p<')
    entry = "<Entry><Instance>* o</Instance><ProbTable>1</ProbTable></Entry>"
    silent = "<Entry><Instance>* -</Instance><ProbTable>0.3 0.7</ProbTable></Entry>"
    telling = "<Entry><Instance>- -</Instance><ProbTable>0.3 0.7 0.4 0.6</ProbTable></Entry>"
    (tmp_path / "x.pomdpx").write_text(text.replace(entry, silent))
    assert any("is left out" in note for note in read_models(tmp_path / "x.pomdpx").notes)
    (tmp_path / "x.pomdpx").write_text(text.replace(entry, telling))
    with pytest.raises(FileError, match="the observation o tells about the hidden variable model_1"):
        read_models(tmp_path / "x.pomdpx")


def test_a_start_that_tells_about_the_model_is_refused(tmp_path):
    head = '<Var>model_0</Var><Parent>null</Parent><Parameter type="TBL">\n<Entry><Instance>-</Instance>'
    old = head + "<ProbTable>uniform<"
    assert old in FINCH
    named = head.replace("null", "rain_0")
    new = named.replace("<Instance>-<", "<Instance>* -<") + "<ProbTable>uniform<"
    (tmp_path / "x.pomdpx").write_text(FINCH.replace(old, new))
    assert read_models(tmp_path / "x.pomdpx").training.weights.tolist() == [0.5, 0.5]  # named, but independent
    text = FINCH.replace(old, named.replace("<Instance>-<", "<Instance>- -<") + "<ProbTable>identity<")
    start = "<Entry><Instance>s1</Instance><ProbTable>1.0<"
    assert start in text
    text = text.replace(start, "<Entry><Instance>-</Instance><ProbTable>uniform<")
    (tmp_path / "x.pomdpx").write_text(text)
    with pytest.raises(FileError, match="the start state tells about the hidden variable"):
        read_models(tmp_path / "x.pomdpx")


CASSANDRA = """# two experts, a cost
discount: 0.9   values: cost
states: low_M1 high_M1 low_M2 high_M2
actions: DN FG
observations: low high
start: 0.25 0.0 0.75 0.0

T: DN identity
T: FG : low_M1 uniform
T: FG : low_M1 : 2 0
T: FG : low_M1 : 3 0
T: FG : low_M1 : low_M1 0.5
T: FG : low_M1 : high_M1 0.5
T: FG : high_M1
0 1 0 0
T: FG : 2 : 2 1e-1
T: FG : 2 : 3 .9
T: FG : 3 : 3 1.0
O: *
1 0
0 1
1 0
0 1
R: * : * : * : * 2
R: FG : * : * : high -3.5
R: DN : low_M1 : low_M1 : * 7
"""


def test_cassandra_as_people_write_it(tmp_path):
    (tmp_path / "x.POMDP").write_text(CASSANDRA)
    held = read_models(tmp_path / "x.POMDP")
    belief = held.training
    assert (belief.states, belief.actions, belief.model_names) == (("low", "high"), ("DN", "FG"), ("M1", "M2"))
    assert belief.weights.tolist() == [0.25, 0.75]
    np.testing.assert_allclose(belief.transitions[:, :, 0], [np.eye(2)] * 2)
    np.testing.assert_allclose(belief.transitions[:, 0, 1], [[0.5, 0.5], [0.1, 0.9]])
    # Costs 2; FG that ends high earns 3.5 instead; DN under M1 in low costs 7.
    np.testing.assert_allclose(belief.rewards[0], [[-7.0, 0.5 * -2 + 0.5 * 3.5], [-2.0, 3.5]])
    np.testing.assert_allclose(belief.rewards[1], [[-2.0, 0.1 * -2 + 0.9 * 3.5], [-2.0, 3.5]])
    assert belief.reward_signal == "unobserved"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("discount: 0.9", "discount: 9", "line 2: discount is 9"),
        ("discount: 0.9", "", "has no statement 'discount:'"),
        ("values: cost", "values: gold", "give reward or cost"),
        ("states: low_M1 high_M1 low_M2 high_M2", "states: 99999999999", "give a number from 1"),
        ("states: low_M1 high_M1 low_M2 high_M2\nactions: DN FG\nobservations: low high\nstart: 0.25 0.0 0.75 0.0",
         "states: 900000\nactions: DN FG\nobservations: low high", "too large to be written out"),
        ("states: low_M1", "states: low_M2", "a name is given twice"),
        ("states: low_M1", "states: 1low", "is no name"),
        ("observations: low high", "", "observations: must come before the first T:"),
        ("T: FG : 2 : 3 .9", "T: FG : 2 : 3 .8", "T: FG : low_M2 sum to 0.9"),
        ("T: FG : 2 : 3 .9", "T: FG : 2 : 9 .9", "line 17: '9' is not among the 4 states"),
        ("T: FG : 2 : 3 .9", "T: FG : 2 : 1 .9", "T: FG : low_M2 : high_M1 leads to another"),
        ("T: FG : 2 : 3 .9", "T: FG : 2 : 3 many", "'many' is not a number"),
        ("1 0\n0 1\n1 0\n0 1", "1 0\n0 1\n0.9 0.1\n0 1", "O: DN : low_M2 does not always show the same"),
        ("0.25 0.0 0.75 0.0", "0.25 0.25 0.5 0.0", "tells about the hidden one"),
        ("0.25 0.0 0.75 0.0", "0.25 0.0", "is not a number"),
        ("R: DN : low_M1 : low_M1 : * 7", "R: DN : low_M1 : low_M1 : *", "the file ends in the middle"),
        ("R: DN : low_M1 : low_M1 : * 7", "Q: 7", "line 26: 'Q' begins no statement"),
        ("R: DN : low_M1 : low_M1 : * 7", "R: DN 7", "a reward needs an action and a state"),
    ],
)  # fmt: skip
def test_cassandra_that_is_refused_with_the_place_and_the_reason(tmp_path, old, new, message):
    assert old in CASSANDRA
    (tmp_path / "x.pomdp").write_text(CASSANDRA.replace(old, new))
    with pytest.raises(FileError, match=re.escape(message)):
        read_models(tmp_path / "x.pomdp")


def test_the_tiger_is_refused_because_it_moves(tmp_path):
    (tmp_path / "tiger.pomdp").write_text(
        "discount: 0.95\nvalues: reward\nstates: left right\nactions: listen open\nobservations: l r\n"
        "T: listen identity\nT: open uniform\nO: listen\n0.85 0.15\n0.15 0.85\nO: open uniform\n"
    )
    with pytest.raises(FileError, match="does not always show the same"):
        read_models(tmp_path / "tiger.pomdp")


def test_start_is_written_in_many_ways(tmp_path):
    for words, weights in (
        ("start: low_M2", [0.0, 1.0]),
        ("start: 0", [1.0, 0.0]),
        ("start include: low_M1 low_M2", [0.5, 0.5]),
        ("start exclude: 1 3", [0.5, 0.5]),
        ("start: uniform", [0.5, 0.5]),
    ):
        (tmp_path / "x.pomdp").write_text(CASSANDRA.replace("start: 0.25 0.0 0.75 0.0", words))
        held = read_models(tmp_path / "x.pomdp")
        assert held.training.weights.tolist() == weights
        assert any("taken to be seen" in note for note in held.notes) == ("uniform" in words)


def test_names_that_a_format_cannot_hold_are_changed_with_a_warning(tmp_path):
    belief = FiniteBelief(np.full((1, 2, 1, 2), 0.5), np.zeros((1, 2, 1)), initial=0, states=("a b", "a_b"))
    with pytest.warns(UserWarning, match="'a_b' is written as 'a_b_1'"):
        write_models(tmp_path / "x.pomdpx", belief, discount=0.9)
    assert read_models(tmp_path / "x.pomdpx").training.states == ("a_b", "a_b_1")
    with pytest.raises(FileError, match="exists; pass overwrite=True"):
        write_models(tmp_path / "x.pomdpx", belief, discount=0.9)


def test_hostile_bytes_never_end_in_a_traceback(tmp_path):
    rng = np.random.default_rng(1)
    for ending, text in ((".pomdpx", FINCH), (".pomdp", CASSANDRA)):
        raw = bytearray(text.encode())
        for _ in range(60):
            broken = bytearray(raw)
            for _ in range(3):
                i = int(rng.integers(len(broken)))
                broken[i : i + int(rng.integers(1, 4))] = bytes(
                    rng.integers(0, 256, size=int(rng.integers(3))).tolist()
                )
            (tmp_path / f"x{ending}").write_bytes(bytes(broken))
            with contextlib.suppress(BeliefboundError):
                read_models(tmp_path / f"x{ending}")


def test_the_command_converts_and_says_what_it_did(tmp_path):
    (tmp_path / "finch.pomdpx").write_text(FINCH)
    done = command("convert", tmp_path / "finch.pomdpx", tmp_path / "finch")
    assert done.returncode == 0, done.stderr
    assert "2 models, 4 states, 2 actions, rewards known, discount 0.9" in done.stdout
    same(read_models(tmp_path / "finch.pomdpx").training, read_models(tmp_path / "finch").training)
    done = command("convert", tmp_path / "finch.pomdpx", tmp_path / "finch")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    done = command("convert", tmp_path / "finch", tmp_path / "finch.pomdp")
    assert "the name 'Low,s0' is written as 'Low_s0'" in done.stderr
    assert read_models(tmp_path / "finch.pomdp").training.model_names == ("M1", "M2")
