"""Names of agents: one canonical form, and an answer to every mistake."""

import pytest

from beliefbound.base.errors import ParameterError
from beliefbound.lab.agents import agent_parameters, agents, canonical_agent, make_agent, parse_agent
from support.environments import CHAIN


def test_names_have_one_canonical_form():
    assert (
        canonical_agent("mcbrl") == canonical_agent(" mcbrl : n = 16 ") == canonical_agent("mcbrl:16") == "mcbrl:n=16"
    )
    assert canonical_agent("mcbrl:tolerance=1e-3,interval=20,n=8") == "mcbrl:n=8,interval=20"
    for name in agents():
        if name != "policy":  # needs a file
            assert canonical_agent(canonical_agent(name)) == canonical_agent(name)
        assert all(agent_parameters(name).values())
    assert parse_agent("mcbrl:n=4").values["n"] == 4


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mcbr", "no agent 'mcbr'; did you mean 'mcbrl'"),
        ("thomson", "did you mean 'thompson'"),
        (16, "give a name such as"),
    ],
)
def test_names_that_are_none_are_answered(name, message):
    with pytest.raises(ParameterError, match=message):
        make_agent(name, CHAIN)
