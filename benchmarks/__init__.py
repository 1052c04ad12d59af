"""Timings against named peers, printed as ratios. `make bench` runs them all; `python -m benchmarks planning` one."""
