"""Everything that proves a lower or an upper bound on the Bayes-optimal value."""
