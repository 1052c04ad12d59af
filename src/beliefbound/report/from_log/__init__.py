"""`beliefbound plan`: from a log of transitions to a certified policy, its files and its page."""
