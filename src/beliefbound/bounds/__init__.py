"""Everything that proves a lower or an upper bound on the Bayes-optimal value: `beliefbound.bounds`.

Most people need `beliefbound.bracket`, `certify`, `lower_bound` and `upper_bound`. What they are made of, and what
answers narrower questions, is here:

* from above: `pair_bound`, `lookahead_upper`, `relaxation`;
* from below: `lookahead_lower`, and `best_memoryless`, the best policy without memory, between proven ends;
* what a bound is: `Kind`;
* how far a policy may be from the best: `policy_regret`;
* what information is worth: `evpi`, `evppi`, `evsi`, which `beliefbound.value_of_information` ranks;
* which policy to choose as weights of models move: `sensitivity`;
* how far a belief is from another: `belief_distance`;
* whether a policy of your own keeps its word: `check_policy`.
"""

import lazy_loader

# Names are listed once, in `__init__.pyi`, and imported when first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
