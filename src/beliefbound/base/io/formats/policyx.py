"""Alpha vectors in the policy files of SARSOP (`.policy`, `.policyx`).

    <Policy type="value"><AlphaVector vectorLength="9" numObsValue="2" numVectors="34">
    <Vector action="0" obsValue="1">86.2 80.1 … </Vector> …

A vector belongs to one value of the observed variable (`obsValue`), starts with an action, and has one number per value
of the hidden variable.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from beliefbound.base.io.formats.xml import Xml
from beliefbound.base.validation import FloatArray, IntArray


class AlphaVectors(NamedTuple):
    """`value[i,m]` of the vectors of `state[i]`, which begin with `action[i]`."""

    state: IntArray
    action: IntArray
    value: FloatArray


def read_alpha_vectors(path: Path, n_models: int, n_states: int, n_actions: int) -> AlphaVectors:
    """The vectors of a file, for a problem of this size."""
    xml = Xml(path, "Policy")
    group = xml.one(xml.root, "AlphaVector")
    found: list[tuple[int, int, list[float]]] = []
    for element in group:
        if element.tag != "Vector":
            raise xml.wrong(element, "is no <Vector>; only dense vectors are read")
        ids = []
        for name, count in (("obsValue", n_states), ("action", n_actions)):
            text = (element.get(name) or "").strip()
            if not text.isdecimal() or len(text) > 9 or int(text) >= count:
                raise xml.wrong(element, f"{name} is {text[:40]!r}; the models have {name}s 0 to {count - 1}")
            ids.append(int(text))
        value = xml.numbers(element)
        if len(value) != n_models:
            raise xml.wrong(
                element,
                f"has {len(value)} numbers, and there are {n_models} models; the policy must be that of a problem with "
                f"the same observed and hidden variables",
            )
        found.append((ids[0], ids[1], value))
    if not found:
        raise xml.wrong(group, "has no vectors")
    state, action, values = zip(*found, strict=True)
    return AlphaVectors(np.array(state), np.array(action), np.array(values))
