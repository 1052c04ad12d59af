"""`beliefbound robust`: the certificate under the least favourable prior as files and as a page."""

from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.beliefs import FiniteBelief
from beliefbound.beliefs.folder import ModelFolder
from beliefbound.bounds.prior_sets import prior_set
from beliefbound.bounds.robust import RobustBracket
from beliefbound.policy.results import literal
from beliefbound.report.figures import figure, save
from beliefbound.report.page import REPORT, Page, Picture, Section, Table, write_page
from beliefbound.report.using import using_section

_DRAWN = 40  # models that fit into a picture: those of largest weight, or of largest weight in the prior


def model_rows(found: RobustBracket, belief: FiniteBelief) -> tuple[list[str], list[list[str]]]:
    """Header and formatted cells: each model's weight, its weight in the prior, and what the policy earns on it."""
    names = map(found.names.model, range(belief.n_models))
    weights = zip(names, belief.weights, found.prior, found.model_values, strict=True)
    rows = [[name, f"{w:.4g}", f"{p:.4g}", f"{v:.6g}"] for name, w, p, v in weights]
    return ["model", "weight", "least favourable", "the policy earns"], rows


def write_robust(
    found: RobustBracket, folder: ModelFolder, name: str, place: Path, *, horizon: int | None, interrupted: bool
) -> None:
    """Write `prior.{png,svg}` and `report.html` about the models of a folder, which have a name."""
    with figure() as (drawn, axes):
        draw_prior(found, folder.training, axes)
        picture = save(drawn, place / "prior")[1]
    write_page(_page(found, folder, name, picture, horizon, interrupted), place / REPORT)


def draw_prior(found: RobustBracket, belief: FiniteBelief, ax: Any) -> None:
    """Two bars for each model: its weight, and its weight in the least favourable prior."""
    shown = np.sort(np.argsort(-np.maximum(found.prior, belief.weights), kind="stable")[:_DRAWN])
    place = np.arange(len(shown))
    ax.bar(place - 0.2, belief.weights[shown], 0.4, color="tab:gray", label="weight")
    ax.bar(place + 0.2, found.prior[shown], 0.4, color="tab:red", label="least favourable prior")
    ax.set_xticks(place, [literal(found.names.model(m)) for m in shown], rotation=90 if len(shown) > 6 else 0)
    ax.set_ylabel("probability")
    ax.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _page(
    found: RobustBracket, folder: ModelFolder, name: str, picture: Path, horizon: int | None, interrupted: bool
) -> Page:
    belief = folder.training
    proven = found.confidence == 1.0
    holds = "proven" if proven else f"with {100 * found.confidence:.4g}% confidence"
    words = prior_set(found.priors, belief.weights).words
    worst, mean = float(found.model_values.min()), float(belief.weights @ found.model_values)
    early = " The search was interrupted: more time would have brought a narrower bracket." if interrupted else ""
    cut = f" The {_DRAWN} models of largest weight are drawn." if belief.n_models > _DRAWN else ""
    return Page(
        title=f"What {name} is worth under the worst prior",
        lead=(
            f"Whichever of {words} is true, there is a policy that earns {found.lower.value:.6g} or more, and no "
            f"policy earns more than {found.upper.value:.6g} under all of them ({holds}).{early}"
        ),
        facts=[
            ("models", str(belief.n_models)),
            ("states", str(belief.n_states)),
            ("actions", str(belief.n_actions)),
            ("discount", f"{folder.discount:g}"),
            ("decisions", "without end" if horizon is None else str(horizon)),
            ("priors", found.priors),
        ],
        sections=[
            Section(
                "The least favourable prior",
                [
                    f"Under this prior no policy earns more than {found.upper.value:.6g}: "
                    f"{found.upper.method}, {'proven' if found.upper.exact else holds}."
                ],
                [Table(*model_rows(found, belief), "Every model; what the policy earns is exact.")],
                [Picture(picture, f"Weights of the models, and the least favourable prior.{cut}")],
            ),
            Section(
                "The policy",
                [
                    f"A mixture: it draws one of its parts at the start and follows that ({found.lower.method}). It is "
                    f"in robust.policy.npz, for load_policy. It earns {worst:.6g} on the model that is worst for it, "
                    f"and {mean:.6g} on average over the weights, exactly."
                ],
            ),
            using_section("robust.policy.npz", found.names, folder.initial),
            Section(
                "How to make it again",
                [
                    f"`beliefbound verify robust.json` with the models makes the same certificate again: seed "
                    f"{found.seed}, effort {found.rounds}, version {found.version}."
                ],
            ),
            *([Section("What was assumed in reading the folder", folder.notes)] if folder.notes else []),
        ],
    )
