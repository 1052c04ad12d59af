"""Beliefs over MDPs: finite sets of weighted models, product-Dirichlet beliefs with reward beliefs, and your own.

Most people need `beliefbound.FiniteBelief` and `beliefbound.DirichletBelief`. Here are more kinds of rewards, and what
a class of your own needs: `Belief`, `Capability`, `belief_kind` for files, `check_belief`, `check_rewards` for tests.
"""

import lazy_loader

# Names are listed once, in `__init__.pyi`, and imported when first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
