"""Total rewards that papers report, to set beside our own.

Most were recalled, not read in the source, so they stand in tables as "published, unverified" and nothing is asserted
about them. Settings differ between papers: priors, tuned parameters and computing time are the authors' own.

Chain, 1000 steps: BEETLE, AMP-EM, SEM, Exploit and MCBRL are read in "Robust Bayesian reinforcement learning through
tight lower bounds" (its Table 1). BOSS: Asmuth et al. 2009. Strens: Strens 2000. IEQL+, VPI: Dearden et al. 1998. VBRB,
MBIE-EB, BEB (tuned): Sorg et al. 2010. Double loop, grids and maze: Guez et al. 2012, the best setting of each within
0.25 to 1.5 seconds a step. RiverSwim by Strehl: Strehl & Littman 2008, read off bars.
"""

PUBLISHED: dict[str, dict[str, float]] = {
    "chain": {
        "exploit": 3287,
        "mcbrl:n=1": 3166,
        "mcbrl:n=8": 3358,
        "mcbrl:n=16": 3376,
        "beetle:prior=known-rewards,concentration=1.0": 1754,
        "beetle:prior=semi-tied": 3648,
        "beetle:prior=tied": 3650,
        "amp-em:horizon=15,prior=known-rewards,concentration=1.0": 2180,
        "sem:horizon=15,prior=known-rewards,concentration=1.0": 2052,
        "boss": 3003,
        "boss:k=20,b=5,prior=semi-tied": 3651,
        "boss:k=20,b=5,prior=tied": 3657,
        "thompson": 3158,
        "ieql": 2344,
        "bayes-q": 1697,
        "vbrb": 3465,
        "mbie-eb": 3462,
        "beb": 3430,
    },
    "double-loop": {
        "bamcp": 387.6,
        "bfs3": 382.2,
        "sboss": 371.5,
        "beb": 386,
        "thompson": 377,
        "bayes-q": 326,
        "ieql": 264,
    },
    "grid": {"bamcp": 72.9, "bfs3": 66, "sboss": 59.3, "beb": 67.5},
    "grid:10": {"bamcp": 32.7, "bfs3": 10.4, "sboss": 21.8, "beb": 10},
    "maze": {"bamcp": 965.2, "bfs3": 240.9, "sboss": 671.3, "beb": 184.6, "bayes-q": 817.6, "ieql": 269.4},
    "riverswim:form=strehl": {"mbie": 3.1e6, "mbie-eb": 3.1e6, "rmax": 3.1e6},
}


def published(environment: str, agent: str) -> float | None:
    """The figure for an agent with these parameters, else for its family with the published ones; else nothing."""
    here = PUBLISHED.get(environment, {})
    if "prior=" in agent:
        return here.get(agent)
    return here.get(agent, here.get(agent.partition(":")[0]))
