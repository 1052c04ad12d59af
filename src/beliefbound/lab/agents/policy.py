"""`policy:FILE`: a policy that was saved, certified or not, among the agents."""

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Text
from beliefbound.lab.engine.policies import saved_policy
from beliefbound.lab.engine.protocol import Setting
from beliefbound.lab.engine.registry import agent
from beliefbound.policy import Policy


@agent("policy", summary="a policy that was saved, by its file", parameters=(Text("file", about="a file", path=True),))
def policy_of(setting: Setting, *, file: str) -> Policy:
    """The policy of `policy:FILE`, which has nothing to learn but what it was certified to learn."""
    if setting.environment is None:
        raise ParameterError("a saved policy is checked against the environment's model, which is not known here")
    return saved_policy(file, setting.environment)
