"""Experiments as data: a spec, blocks of runs, a store of immutable parts, statistics."""
