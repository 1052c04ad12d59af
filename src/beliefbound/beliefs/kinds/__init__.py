"""Kinds of beliefs that are neither finite nor counts of Dirichlet rows: one file each, found by the name in a file."""
