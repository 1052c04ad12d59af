"""Experiments as data: a spec, blocks of runs, a store of immutable parts, statistics.

>>> import tempfile
>>> from beliefbound.lab import experiments
>>> spec = experiments.Spec(agents=("oracle", "random"), environments=("double-loop",), runs=3, steps=100)
>>> with tempfile.TemporaryDirectory() as folder:
...     experiments.summary(experiments.run(spec, folder).read())["total"][0]
40.0
"""

from beliefbound.lab.experiments.run import run
from beliefbound.lab.experiments.spec import Spec, load_spec
from beliefbound.lab.experiments.statistics import differences, summary
from beliefbound.lab.experiments.store import Store

__all__ = ["Spec", "Store", "differences", "load_spec", "run", "summary"]
