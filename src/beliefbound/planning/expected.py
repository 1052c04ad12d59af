"""The policy that is optimal for the expected MDP, valued under the belief itself.

`E_ξ V^π_μ` is not `V^π` of the expected MDP, so the policy (the paper's `π*(μ̂_ξ)`, MVP elsewhere) is valued on every
model. It is the baseline that MMBI improves on, and what Exploit plays.
"""

from beliefbound.beliefs.capabilities import expected
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.planning.optimal import backward_induction, policy_iteration
from beliefbound.planning.plan import Plan, plan_for
from beliefbound.planning.task import FiniteTask, Task, made_once
from beliefbound.policy import TablePolicy


def expected_mdp_policy(belief: FiniteBelief, *, discount: float, horizon: int | None = None) -> Plan:
    """The expected MDP's optimal policy, with its exact value on each model of a finite belief.

    Returns:
      A `Plan`: `plan.values` is a lower bound on the Bayes-optimal value, usually a looser one than MMBI's.

    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved")
    >>> expected_mdp_policy(belief, discount=0.5).values.tolist()
    [3.0]
    """
    return expected_plan(FiniteTask.of(belief, discount=discount, horizon=horizon))


@made_once
def expected_plan(task: FiniteTask) -> Plan:
    """The same for a task."""
    return plan_for(expected_optimum(task), task)


@made_once
def expected_optimum(task: Task) -> TablePolicy:
    """The optimal policy of the expected MDP, of any belief."""
    mean = expected(task.belief)
    if task.horizon is None:
        return policy_iteration(mean, discount=task.discount).policy
    return backward_induction(mean, discount=task.discount, horizon=task.horizon).policy
