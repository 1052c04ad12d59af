"""Of the values of a parameter, which the first tier tries; `make test-all` tries all."""

import pytest


def tiers(values, *first):
    """The values as parameters of a test: those of `first` in the first tier, the others in the full one."""
    assert set(first) <= set(values)
    return [value if value in first else pytest.param(value, marks=pytest.mark.full) for value in values]
