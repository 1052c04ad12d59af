"""Reading demonstrations: who did what, with transitions by others, and what is wrong with a file."""

import numpy as np
import pytest

from beliefbound.base.errors import FileError, ParameterError
from beliefbound.logs import log_of
from beliefbound.logs.demonstrations import read_demonstrations
from beliefbound.logs.joining import joined

STEPS = {"state": ["dry", "wet", "dry"], "action": ["sow", "wait", "wait"], "next_state": ["wet", "dry", "wet"]}


def written(tmp_path, text, name="demos.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_who_did_what(tmp_path):
    demos = read_demonstrations(STEPS | {"demonstrator": ["ada", "bob", "ada"]})
    assert demos.demonstrators == ("ada", "bob")
    assert demos.visits.tolist() == [[[1, 1], [0, 0]], [[0, 0], [0, 1]]]  # [who, dry wet, sow wait]
    assert demos.n_steps == 3
    assert not demos.never_left.any()
    path = written(tmp_path, "s,a,t,who\n0,1,1,x\n1,0,2,y\n")
    demos = read_demonstrations(path, columns={"state": "s", "action": "a", "next_state": "t", "demonstrator": "who"})
    assert demos.visits.sum(axis=(1, 2)).tolist() == [1, 1]
    assert demos.never_left.tolist() == [False, False, True]


def test_transitions_by_others_add_states_actions_and_counts_but_no_choices():
    others = {"state": ["dry", "mud"], "action": ["dig", "sow"], "next_state": ["mud", "dry"], "reward": [5.0, 6.0]}
    demos = read_demonstrations(STEPS, transitions=others)
    log = demos.log
    assert set(log.states) == {"dry", "wet", "mud"}
    assert set(log.actions) == {"sow", "wait", "dig"}
    assert demos.visits.sum() == 3
    assert log.transition_counts().sum() == 5
    at = [log.states.index("dry"), log.actions.index("dig"), log.states.index("mud")]
    assert log.transition_counts()[tuple(at)] == 1
    assert demos.visits[0, at[0], at[1]] == 0
    assert log.initial[log.states.index("dry")] == 1.0
    assert demos.never_left.tolist() == [name == "mud" for name in log.states]


def test_states_that_both_logs_add_for_what_is_over_are_one():
    one = log_of([0, 1, 0], [0, 1, 0], [0.0] * 3, [1, 0, 0], terminated=[False, True, False])
    two = log_of([0, 2], [0, 0], [0.0] * 2, [2, 0], terminated=[False, True])
    assert one.ended
    assert two.ended
    both = joined(one, two).log
    assert both.n_states == 4
    assert both.terminal.tolist() == [False, False, False, True]
    counts = both.transition_counts()
    assert counts[1, 1, 3] == 1
    assert counts[2, 0, 3] == 1
    assert counts.sum() == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("state,action,reward,next_state\n0,1,0,1\n1,0,1,0\n", "beliefbound plan"),
        ("state,action,next_state\n0,1,1\n1,1,0\n0,1,1\n", None),
        ("state,action,next_state\n0,0,1\n1,0,0\n", "every step takes the action '0'"),
        ("state,next_state\n0,1\n1,0\n", "no column 'action'"),
        ("episode,t,state,action,next_state\n0,0,0,0,1\n0,0,0,1,1\n", "repeated step"),
        ("episode,t,state,action,next_state\n0,0,0,0,1\n0,1,0,1,1\n", "broken episode"),
        ("state,action,next_state\n0,0,1\n", "1 row"),
        ("state,action,next_state,demonstrator\n0,0,1,a\n1,1,0,\n", "row 2, column 'demonstrator'"),
        ("state,action,next_state\n0,0,1\n-1,1,0\n", "row 2, column 'state'"),
    ],
)
def test_a_file_that_is_no_demonstration_is_refused_with_place_and_fix(tmp_path, text, words):
    path = written(tmp_path, text)
    if words is None:  # one action was taken, another exists
        assert read_demonstrations(path).log.n_actions == 2
        return
    with pytest.raises(FileError, match=words):
        read_demonstrations(path)


def test_names_here_and_numbers_there_are_refused():
    with pytest.raises(FileError, match="names in"):
        read_demonstrations(STEPS, transitions={"state": [0, 1], "action": [0, 1], "next_state": [1, 0]})


def test_a_state_that_ends_episodes_in_one_log_and_is_left_in_the_other_is_refused():
    ends = {"state": [0, 1], "action": [0, 1], "next_state": [1, 2], "terminated": [False, True]}
    goes_on = {"state": [2, 0], "action": [0, 1], "next_state": [0, 2]}
    with pytest.raises(FileError, match="ends episodes in one"):
        read_demonstrations(ends, transitions=goes_on)


def test_as_many_demonstrators_as_rows_are_refused():
    n = 150
    rows = {"state": [0, 1] * (n // 2), "action": [0, 1] * (n // 2), "next_state": [1, 0] * (n // 2)}
    with pytest.raises(FileError, match="150 demonstrators"):
        read_demonstrations(rows | {"demonstrator": np.arange(n)})
    with pytest.raises(ParameterError, match="columns is 3"):
        read_demonstrations(rows, columns=3)
