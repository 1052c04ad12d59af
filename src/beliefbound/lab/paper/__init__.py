"""The paper's experiments: Table 1, Figure 1 and Figure 2.

>>> from beliefbound.lab.paper import figure1
>>> figure1(points=3).curves["E max"].shape
(3,)
"""

from beliefbound.lab.paper.figure1 import Figure1, figure1

__all__ = ["Figure1", "figure1"]
