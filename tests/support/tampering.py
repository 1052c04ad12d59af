"""Certificates that somebody changed: every entry of a file in several ways, and the list of files made to fit."""

import json
import shutil
from copy import deepcopy

import numpy as np

from beliefbound.base.errors import BeliefboundError
from beliefbound.base.io.result_folder import CONTENTS, digest, names_in
from beliefbound.jobs import verify

# What nothing can find again, and the list of files, which is of the files as they are.
TOLD = ("seconds", "interrupted", "machine", "library", "models", "name")


def copied(file, place):
    """A copy of a certificate's folder: its file there."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(file.parent, place)
    return place / file.name


def relisted(file):
    """The list of files as it would be, had they been written as they are now."""
    path = file.parent / CONTENTS
    listed = json.loads(path.read_text())
    listed["files"] = {name: digest(file.parent / name) for name in names_in(file.parent)}
    path.write_text(json.dumps(listed, indent=2) + "\n")


def code(file, models):
    """The exit code that the command would have."""
    try:
        return verify.verify(file, models).code
    except BeliefboundError:
        return 1


def paths(held, path=()):
    """The way to every entry of an object; of long lists, to the first two and the last."""
    if isinstance(held, dict):
        for key, inside in held.items():
            yield (*path, key)
            yield from paths(inside, (*path, key))
    elif isinstance(held, list):
        for k in sorted({0, 1, len(held) - 1} & set(range(len(held)))):
            yield (*path, k)
            yield from paths(held[k], (*path, k))


def changes(held):
    """Other values in place of one: another of its type, one of another type, and none at all."""
    if isinstance(held, bool):
        return [not held, str(held), None]
    if isinstance(held, int):
        return [held + 1, float(held), str(held)]
    if isinstance(held, float):
        return [held * (1 + 1e-12) + 1e-300, str(held), None] if np.isfinite(held) else [0.0]
    if isinstance(held, str):
        return [held + " ", 1, None]
    return [[], "x", 1] if held is None else [None, [], {}]


def tampered_objects(content):
    """`(what was done, the object)`: each entry changed, retyped and removed."""
    for path in paths(content):
        *way, last = path
        at = ".".join(map(str, path))
        held = content
        for key in path:
            held = held[key]
        for other in [*changes(held), "removed"]:
            copy = deepcopy(content)
            inside = copy
            for key in way:
                inside = inside[key]
            if isinstance(other, str) and other == "removed":
                del inside[last]
            elif other == held and type(other) is type(held):
                continue
            else:
                inside[last] = other
            yield f"{at}: {other!r:.20}", path, copy


def is_told(path):
    """Whether nothing can find an entry again; pages and the list of files repeat it."""
    return any(key in TOLD for key in path)
