"""`beliefbound certify`: a policy and models in, what it earns on them and how far it can be from the best out."""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from beliefbound.base.errors import FileError
from beliefbound.base.grammar import nearest
from beliefbound.base.interrupt import first_interrupt
from beliefbound.base.io.atomic import check_writable
from beliefbound.base.plugins import blamed, load_plugin
from beliefbound.beliefs.folder import ModelFolder
from beliefbound.bounds.certified import Certified, certify
from beliefbound.bounds.record import TracePoint
from beliefbound.jobs.made import ModelOptions


@dataclass(frozen=True, kw_only=True)
class CertifyOptions(ModelOptions):
    """What can be asked of `beliefbound certify`; `samples`: walks, where the policy's value is simulated."""

    samples: int = 1000


class PolicyCertificate(NamedTuple):
    """The models, what was found, and whether somebody ended the search before its time."""

    folder: ModelFolder
    found: Certified
    interrupted: bool


def certify_policy(
    policy: Path,
    models: Path | str,
    file: Path,
    options: CertifyOptions,
    *,
    watch: Callable[[TracePoint], object] | None = None,
    say: Callable[[], object] = lambda: None,
) -> PolicyCertificate:
    """Certify the policy of a file, or a class of a Python file (`agent.py:Class`), on the training models of a folder,
    and write the result into `file`; Ctrl-C as for `certify_folder`."""
    module, colon, name = str(policy).rpartition(":")
    is_class = bool(colon) and not policy.exists() and module.endswith(".py")
    if not is_class and not policy.is_file():
        raise FileError(f"cannot read {policy}: it is no file; give a policy's file, or agent.py:Class")
    folder = options.read(models)
    check_writable(file.parent)
    acting = agent_of(module, name, folder) if is_class else policy
    with first_interrupt(say) as asked, blamed(str(policy), foreign=is_class):
        knobs = options.of(folder) | {"watch": watch, "stop": asked.is_set}
        found = certify(acting, folder.training, samples=options.samples, **knobs)
    found.save(file)
    return PolicyCertificate(folder, found, asked.is_set())


def agent_of(module: str, name: str, folder: ModelFolder) -> Any:
    """An object of the class `name` in a Python file: it gets those of `n_states`, `n_actions`, `discount`, `initial`
    and `belief` that its constructor asks for by name."""
    load_plugin(module)
    loaded = sys.modules[f"plugin_{Path(module).stem}"]
    made = getattr(loaded, name, None)
    if not isinstance(made, type):
        classes = [key for key, held in vars(loaded).items() if isinstance(held, type)]
        raise FileError(
            f"{module} has no class {name!r}; {nearest(name, classes)}known: {', '.join(classes) or 'none'}"
        )
    belief = folder.training
    known: dict[str, Any] = {"n_states": belief.n_states, "n_actions": belief.n_actions, "discount": folder.discount}
    known |= {"initial": folder.initial, "belief": belief}
    with blamed(f"{module}:{name}", foreign=True):
        asked = inspect.signature(made).parameters
        return made(**{key: value for key, value in known.items() if key in asked})
