"""From what was done to what was wanted: beliefs about rewards from demonstrations, and the classic alternatives."""
