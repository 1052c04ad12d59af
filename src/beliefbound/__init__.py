"""beliefbound: beliefs over Markov decision processes in, policies and proven bounds out.

>>> import beliefbound as bb
>>> belief = bb.DirichletBelief(5, 2).sample(16, rng=0)
>>> plan = bb.mmbi(belief, discount=0.95, horizon=100)
>>> plan.value() <= bb.qmdp(belief, discount=0.95, horizon=100).value
True
"""

import lazy_loader

# Names are listed once, in `__init__.pyi`, and imported when first used, so that `import beliefbound` is instant.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"
