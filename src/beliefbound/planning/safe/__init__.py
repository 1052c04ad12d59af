"""Policies from a log that improve on the behaviour that made it: the safe-policy-improvement family, one file each."""
