"""`beliefbound plan`: from a log of transitions to a certified policy, and its files."""
