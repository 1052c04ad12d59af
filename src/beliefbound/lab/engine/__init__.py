"""What runs agents: their protocol, priors and names; single steps, episodes, thousands of runs; policies as agents."""
