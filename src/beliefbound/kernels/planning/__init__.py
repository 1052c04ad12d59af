"""Sweeps over sets of models, and what planners build on them."""
