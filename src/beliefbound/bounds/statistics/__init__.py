"""Confidence bounds on means: betting, empirical Bernstein, Student."""
