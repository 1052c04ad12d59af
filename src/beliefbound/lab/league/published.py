"""Total rewards that papers report, to set beside our own: like with like, or not at all.

A figure stands here only where the setting is the published one as far as that is known: parameters, prior, what is
known of rewards, number of steps. It is never shown for another setting of the same agent. `docs/published.md` has all
figures, and by experiments what differs. Most were recalled, not read in the source, so nothing is asserted about them.

Chain, 1000 steps: Exploit, MCBRL and BEETLE without structure are read in "Robust Bayesian reinforcement learning
through tight lower bounds" (its Table 1). BEETLE with structure: Poupart et al. 2006. BOSS: Asmuth et al. 2009. Double
loop: Guez et al. 2012, whose c = 3 is 1.5 times the range of rewards there. RiverSwim by Strehl: Strehl & Littman 2008,
read off bars, the settings of their section 6.
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
        "boss:k=5,b=10,prior=known-rewards": 3003,
        "boss:k=5,b=10,prior=semi-tied": 3651,
        "boss:k=5,b=10,prior=tied": 3657,
    },
    "double-loop": {
        "bamcp:simulations=1000,c=1.5,prior=known-rewards": 387.6,
        "sboss:copies=fixed,prior=known-rewards": 371.5,
    },
    "riverswim:form=strehl": {"mbie:transitions=0.0": 3.1e6, "mbie-eb": 3.1e6, "rmax:m=16": 3.1e6},
}


def published(environment: str, agent: str) -> float | None:
    """The figure for this agent with these parameters, by its canonical name; else nothing.

    >>> published("chain", "mcbrl:n=16"), published("chain", "mcbrl:n=4")
    (3376, None)
    """
    return PUBLISHED.get(environment, {}).get(agent)
