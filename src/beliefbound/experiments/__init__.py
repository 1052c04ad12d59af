"""Experiments as data: a spec, blocks of runs, a store of immutable parts, statistics.

>>> import tempfile
>>> from beliefbound import experiments
>>> spec = experiments.Spec(agents=("oracle", "random"), environments=("double-loop",), runs=3, steps=100)
>>> with tempfile.TemporaryDirectory() as folder:
...     experiments.summary(experiments.run(spec, folder).read())["total"][0]
40.0
"""

from beliefbound.experiments.run import run
from beliefbound.experiments.spec import Spec, load_spec
from beliefbound.experiments.statistics import differences, summary
from beliefbound.experiments.store import Store

__all__ = ["Spec", "Store", "differences", "load_spec", "run", "summary"]
