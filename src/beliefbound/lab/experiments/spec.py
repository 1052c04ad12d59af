"""What an experiment is: agents × environments × seeds, each for so many runs of so many steps.

A spec is decoded from TOML or JSON; a mistake names the path of the field. Two specs describe the same experiment when
everything but the number of runs agrees: runs are addressed by number, so more of them can be added to a store later.
"""

import hashlib
import re
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from beliefbound.base.errors import BeliefboundError, FileError, ParameterError
from beliefbound.base.grammar import Text
from beliefbound.base.io.paths import as_path
from beliefbound.base.limits import SPEC_BYTES
from beliefbound.lab.engine.play import MAX_STEPS
from beliefbound.lab.engine.registry import AGENTS, canonical_agent
from beliefbound.lab.envs import make_env
from beliefbound.lab.envs.registry import ENVIRONMENTS

MAX_POINTS = 1_000_000  # of a curve
MAX_MARKS = 40  # dots and opening brackets outside of texts; a spec has three lists and two decimal numbers

RunCount = Annotated[int, msgspec.Meta(ge=1, le=10**9)]
StepCount = Annotated[int, msgspec.Meta(ge=1, le=MAX_STEPS)]
Seed = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An experiment.

    Attributes:
      agents: names with parameters, such as `"mcbrl:n=16"`; see `beliefbound agents`.
      environments: names with parameters, such as `"grid:5"`; see `beliefbound envs`.
      runs: independent runs of each agent on each environment for each seed.
      steps: rewards counted in a run.
      seeds: root seeds; each gives a separate batch of runs.
      discount: of the utility, and of the agents' planning; default: each environment's own.
      accounting: `standard` (`steps` rewards weighted 1, γ, γ², …) or `paper` (the reset's reward of 0 is the first).
      curve_every: record the total reward so far every so many steps; 0 records none.
      visits: record how often each state was visited.
      stuck_below: a run with a smaller total counts as stuck in a suboptimal regime; optional.
      title: shown on the report.

    >>> spec = Spec(agents=("exploit",), environments=("chain",), runs=10, steps=100)
    >>> spec.cells()[0].folder
    'exploit@chain@1'
    """

    agents: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    environments: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    runs: RunCount
    steps: StepCount
    seeds: Annotated[tuple[Seed, ...], msgspec.Meta(min_length=1)] = (1,)
    discount: Annotated[float, msgspec.Meta(ge=0.0, lt=1.0)] | None = None
    accounting: Literal["standard", "paper"] = "standard"
    curve_every: Annotated[int, msgspec.Meta(ge=0)] = 0
    visits: bool = False
    stuck_below: float | None = None
    title: str = ""

    def cells(self) -> list["Cell"]:
        """Every (agent, environment, seed), in the spec's order."""
        return [
            Cell(agent, environment, seed)
            for environment in self.environments
            for agent in self.agents
            for seed in self.seeds
        ]

    def identity(self) -> dict[str, object]:
        """What makes two experiments the same: everything that changes a run's result, and the library's version."""
        fields: dict[str, object] = msgspec.to_builtins(self)
        for cosmetic in ("runs", "title", "stuck_below"):
            del fields[cosmetic]
        return {**fields, "files": _files(self), "version": version("beliefbound")}

    def digest(self) -> str:
        """A short hash of the identity, the folder of the experiment's parts."""
        return hashlib.sha256(msgspec.json.encode(self.identity(), order="sorted")).hexdigest()[:12]


class Cell(NamedTuple):
    """One agent on one environment with one root seed."""

    agent: str
    environment: str
    seed: int

    @property
    def folder(self) -> str:
        """A folder name that shows the cell and cannot leave the store, whatever the names contain."""
        shown = f"{self.agent}@{self.environment}@{self.seed}"
        safe = re.sub(r"[^A-Za-z0-9=,@._-]", "_", shown.replace(":", "-")).lstrip(".")
        if safe == shown and len(safe) <= 100:
            return safe
        return f"{safe[:80]}-{hashlib.sha256(shown.encode()).hexdigest()[:8]}"


def _files(spec: Spec) -> dict[str, str]:
    """The content, as a digest, of every file and folder that the spec names, and of those that agents and environments
    of other people are made by: another content is another experiment."""
    names = [(AGENTS, name) for name in spec.agents] + [(ENVIRONMENTS, name) for name in spec.environments]
    found: dict[str, str] = {}
    for registry, name in names:
        parsed = registry.parse(name)
        found |= {f"the file of {family.name}": family.edition for family in parsed.families if family.edition}
        for parameter in parsed.family.parameters:
            if isinstance(parameter, Text) and parameter.path:
                path = Path(str(parsed.values[parameter.name]))
                files = sorted(path.iterdir()) if path.is_dir() else [path]
                total = hashlib.sha256()
                for file in files:
                    if file.is_file():
                        total.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
                found[str(path)] = total.hexdigest()
    return found


def checked(spec: Spec) -> Spec:
    """The spec with agents and environments in canonical form, after checking that they exist and are distinct."""
    try:
        msgspec.convert(msgspec.to_builtins(spec), type=Spec)
    except (msgspec.ValidationError, TypeError) as cause:
        raise ParameterError(f"not a spec: {cause}") from None
    if spec.curve_every and spec.steps // spec.curve_every > MAX_POINTS:
        raise ParameterError(
            f"$.curve_every: {spec.steps // spec.curve_every} points a run; "
            f"every {spec.steps // MAX_POINTS} steps gives {MAX_POINTS}"
        )
    agents: list[str] = []
    environments: list[str] = []
    for kind, names, found, resolve in (
        ("agents", spec.agents, agents, canonical_agent),
        ("environments", spec.environments, environments, lambda name: make_env(name).name),
    ):
        for i, name in enumerate(names):
            try:
                found.append(resolve(name))
            except BeliefboundError as cause:
                raise ParameterError(f"$.{kind}[{i}]: {cause}") from None
            if found[-1] in found[:-1]:
                raise ParameterError(f"$.{kind}[{i}]: {name!r} is listed twice")
    if len(set(spec.seeds)) != len(spec.seeds):
        raise ParameterError(f"$.seeds: {list(spec.seeds)} has a seed twice")
    return msgspec.structs.replace(spec, agents=tuple(agents), environments=tuple(environments))


def load_spec(path: Path | str) -> Spec:
    """Read and check a spec from a `.toml` or `.json` file."""
    path = as_path(path)
    try:
        with path.open("rb") as file:
            text = file.read(SPEC_BYTES + 1)
    except OSError as cause:
        raise FileError(f"cannot read {path}: {cause.strerror or cause}") from None
    if len(text) > SPEC_BYTES:
        raise FileError(f"{path} is longer than {SPEC_BYTES:,} bytes, so it is not a spec; see beliefbound run --help")
    _check_flat(text, path)
    decode = msgspec.json.decode if path.suffix == ".json" else msgspec.toml.decode
    try:
        return checked(decode(text, type=Spec))
    except msgspec.ValidationError as cause:
        raise FileError(f"{path}: {cause}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as cause:
        raise FileError(f"{path} is not valid {path.suffix.lstrip('.') or 'TOML'}: {cause}") from None
    except ParameterError as cause:
        raise FileError(f"{path}: {cause}") from None


def _check_flat(text: bytes, path: Path) -> None:
    """Refuse tables and dotted keys by the dozen: decoding them takes long, and a spec has lists and no more."""
    quote, before, marks = "", "", 0
    for char in text.decode("utf-8", "replace"):
        if quote:
            quote = "" if char == "\n" or (char == quote and (before != "\\" or quote == "#")) else quote
            before = "" if before == "\\" else char
        elif char in "\"'#":
            quote, before = char, ""
        else:
            marks += char in ".[{"
    if marks > MAX_MARKS:
        raise FileError(f"{path} has nested tables or dotted keys; a spec has names, numbers and lists of them")
