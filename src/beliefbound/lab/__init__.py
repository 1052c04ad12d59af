"""The laboratory: agents that learn by acting, on environments, in experiments, in a league, and in the paper's own.

`lab.agents` and `lab.envs` are where others' agents and environments come in; `lab.engine` runs them, `lab.experiments`
runs many and keeps the results, `lab.league` compares everybody, `lab.paper` reproduces what was published.
"""
