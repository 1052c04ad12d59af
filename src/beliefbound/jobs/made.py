"""What is asked of jobs on models, and how a certificate was made: so that `beliefbound verify` can make it again."""

import hashlib
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from beliefbound.base.errors import FileError
from beliefbound.base.io.atomic import write_text
from beliefbound.beliefs.folder import ModelFolder, read_models
from beliefbound.beliefs.signals import RewardSignal
from beliefbound.bounds.bracket import Target


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What can be asked of every job on models.

    Attributes:
      horizon, confidence, target_gap, time_limit, threads: as for `bracket`.
      reward_signal, absorbing, weights, initial: of the models, as for `read_models`.
      seed: of all randomness.
    """

    horizon: int | None = None
    confidence: float = 0.95
    target_gap: float | None = None
    time_limit: float | None = None
    reward_signal: RewardSignal | None = None
    absorbing: Sequence[str] | None = None
    weights: Any = None
    initial: Any = None
    seed: int = 1
    threads: int | None = None

    def read(self, models: Path | str) -> ModelFolder:
        """The models."""
        return read_models(
            models,
            reward_signal=self.reward_signal,
            absorbing=self.absorbing or (),
            weights=self.weights,
            initial=self.initial,
        )

    def chosen(self, folder: ModelFolder) -> dict[str, list[float]]:
        """Weights and start as numbers, where they were chosen: a certificate holds them."""
        given = (("weights", self.weights, folder.training.weights), ("initial", self.initial, folder.initial))
        return {name: held.tolist() for name, asked, held in given if asked is not None}

    def of(self, folder: ModelFolder) -> dict[str, Any]:
        """What functions such as `robust_bracket` and `certify` are told of the problem and of the search."""
        knobs = {name: getattr(self, name) for name in ("horizon", "confidence", "target_gap", "time_limit", "threads")}
        return knobs | {"initial": folder.initial, "discount": folder.discount, "rng": self.seed}


class Made(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What makes a certificate again, besides seed, effort and version, which its result holds.

    Attributes:
      models, name: where the models were read from, as it was said, and their name.
      digest: of the models (`digest_of`).
      machine: the kind of machine (`machine`).
      discount, reward_signal, absorbing, horizon, confidence, target, controller, measure: of the problem and the job.
      weights, initial: where somebody chose others than those of the models' files.
      starts: steps of the bracket from each start state, where these were asked for; empty before they are taken.
      sensitivity: the models whose weights move, where that was asked for.
    """

    models: str
    name: str
    digest: str
    machine: str
    discount: float
    reward_signal: str
    absorbing: list[str]
    horizon: int | None
    confidence: float
    target: Target = "value"
    controller: int | None = None
    measure: int | None = None
    weights: list[float] | None = None
    initial: list[float] | None = None
    starts: list[int] | None = None
    sensitivity: list[int] | None = None

    @classmethod
    def of(cls, folder: ModelFolder, models: Path | str, **how: Any) -> "Made":
        """From models, where they were read, and `how`: the fields that neither they nor this machine decide."""
        return cls(
            models=str(models),
            name=Path(models).resolve().name,
            digest=digest_of(folder),
            machine=machine(),
            discount=folder.discount,
            reward_signal=folder.training.reward_signal,
            absorbing=list(folder.absorbing),
            **how,
        )

    def read(self, file: Path, models: Path | str | None) -> tuple[Path, ModelFolder]:
        """The models, and where they are: in `models`, or where the certificate `file` says; an error where they are
        others."""
        path = found_at(file, self.models, models, "models")
        others = {"absorbing": self.absorbing, "weights": self.weights, "initial": self.initial}
        folder = read_models(path, reward_signal=self.reward_signal, **others)  # type: ignore[arg-type]
        if digest_of(folder) != self.digest or folder.discount != self.discount:
            raise FileError(f"the models in {path} are not those of {file}; give the folder it was made from")
        return path, folder


def found_at(file: Path, said: str, given: Path | str | None, what: str) -> Path:
    """Where that is which the certificate `file` was made from: as given, or as was said, from here or from there."""
    if given is not None:
        return Path(given)
    path = next((path for path in (Path(said), file.parent / said) if path.exists()), None)
    if path is None:
        raise FileError(f"{file} was made from {said}, which is not here; give the {what} as a second argument")
    return path


def machine() -> str:
    """The kind of machine, as far as results depend on it: processor, compilers of loops and of arrays, pictures."""
    import llvmlite.binding as llvm

    used = ", ".join(f"{name} {version(name)}" for name in ("numba", "numpy", "scipy", "matplotlib"))
    return f"{platform.machine()} {llvm.get_host_cpu_name()}, {used}"


def digest_of(folder: ModelFolder) -> str:
    """SHA-256 of the training models, their weights and the start, whatever files they came from."""
    belief, hashed = folder.training, hashlib.sha256()
    arrays = (belief.models.rewards, belief.models.available, belief.weights, folder.initial)
    for array in (*belief.models.nonzero(), *arrays):
        hashed.update(str(array.shape).encode())
        hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()


class Job(msgspec.Struct, kw_only=True):
    """The part of a certificate's entry `job` that nothing can find again: it is told."""

    made: Made
    interrupted: bool

    def entries(self) -> dict[str, Any]:
        """As entries of a file."""
        entries: dict[str, Any] = msgspec.to_builtins(self)
        return entries

    @classmethod
    def of(cls, file: Path, content: dict[str, Any]) -> "Job":
        """That of a certificate's file."""
        try:
            return msgspec.convert(content["job"], cls)
        except (msgspec.ValidationError, RecursionError) as cause:
            raise FileError(f"{file} is no certificate that can be made again: job: {cause}") from None


class Again(NamedTuple):
    """A certificate that was found again.

    Attributes:
      found: what was found, with the ends `lower` and `upper`.
      written: the ends that the file has.
      where, machine, library: where what it was made from was read and the seed, in words; the machine and the version
        that the file says made it.
      write_files, write_pages: write everything into a folder, the pages and pictures after the rest.
    """

    found: Any
    written: tuple[float, float]
    where: str
    machine: str
    library: str
    write_files: Callable[[Path], object]
    write_pages: Callable[[Path], object]


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write an object as JSON that can be read."""
    write_text(path, msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n")
