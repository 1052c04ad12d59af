"""What several tests need: independent oracles, plain twins of agents, beliefs to try things on."""
