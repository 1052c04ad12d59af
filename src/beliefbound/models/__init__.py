"""Sets of models that share states and actions: the one place that knows how their arrays are laid out."""

from beliefbound.models.build import build
from beliefbound.models.dense import Dense
from beliefbound.models.model_set import HasModels, ModelSet
from beliefbound.models.sparse import Csr

__all__ = ["Csr", "Dense", "HasModels", "ModelSet", "build"]
