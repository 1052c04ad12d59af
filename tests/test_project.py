"""Facts about the project itself: layers, documented names, fast import."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

import beliefbound
from beliefbound.lab.agents import agents
from beliefbound.lab.engine.registry import AGENTS

SOURCE = Path(beliefbound.__file__).parent
TESTS = Path(__file__).parent
ROOT = TESTS.parent

LAYERS = [
    {"base"},
    {"kernels"},
    {"models", "policy"},
    {"beliefs", "logs", "lab.envs"},
    {"planning"},
    {"bounds", "theory"},
    {"lab.engine"},
    {"lab.agents"},
    {"lab.experiments"},
    {"report"},
    {"jobs", "lab.league", "lab.paper"},
    {"cli", "__main__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
MODULES = sorted(
    path for path in SOURCE.rglob("*.py") if path.parent not in (SOURCE, SOURCE / "lab") or path.stem != "__init__"
)
STEMS = {path.stem for path in MODULES}
INNER = {path.parent.name for path in MODULES} - {path.name for path in SOURCE.iterdir()}  # folders in folders
# Names that end so are of files that commands read and write.
FILES = {"csv", "html", "json", "md", "npz", "parquet", "png", "py", "pyi", "svg", "toml", "txt"}
STUB = [node for node in ast.parse((SOURCE / "__init__.pyi").read_text()).body if isinstance(node, ast.ImportFrom)]
HOME = {alias.name: node.module for node in STUB if node.module for alias in node.names}  # the module a name lives in
ROOMS = {alias.name for node in STUB if not node.module for alias in node.names}  # modules that are public themselves
# Plain results of functions: documented by their attributes, shown in the examples of the functions that return them.
RESULTS = {
    "Belief",  # a protocol: its methods say what they are
    "Bracket",
    "BestMemoryless",
    "Certified",
    "Information",
    "Log",
    "ModelFolder",
    "Plan",
    "RobustBracket",
    "Runs",
}


def imported(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if node.module == "beliefbound":
                names |= {"beliefbound." + HOME.get(alias.name, alias.name) for alias in node.names}
            elif node.module:
                names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {room_of(name.split(".")[1:]) for name in names if name.startswith("beliefbound.")}


def room_of(place: list[str]) -> str:
    """The first name on the way to a module; in the laboratory, two."""
    return ".".join(place[: 2 if place[0] == "lab" else 1])


@pytest.fixture(scope="module")
def trees():
    """Every source file, read once."""
    return {path: ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}


def below(trees, room):
    """Those of one folder."""
    return [(path, tree) for path, tree in trees.items() if path.is_relative_to(SOURCE / room)]


def test_imports_point_down_the_layers(trees):
    for path in MODULES:
        place = path.relative_to(SOURCE)
        room = room_of(list(place.with_suffix("").parts))
        assert room in RANK, f"{room} has no layer: give it one here and in ARCHITECTURE.md"
        for other in imported(trees[path]):
            assert other in RANK, f"{place} imports the unknown room {other}"
            assert RANK[other] <= RANK[room], f"{place} in {room} imports {other}, a layer above it"


def test_tests_lie_where_the_rooms_do():
    """A folder of tests is a room or a sub-room; `fuzz` is the tests of `soak`, and `support` has none."""
    for folder in {path.parent for path in TESTS.rglob("test_*.py")}:
        place = folder.relative_to(TESTS)
        assert (SOURCE / place).is_dir() or str(place) == "fuzz", f"tests/{place} is no room of the package"


def test_every_agent_has_a_test_file_of_its_own():
    """In which `EveryAgent` says what holds for all of them: one process compiles it, once."""
    for name in (name for name in agents() if not AGENTS.find(name).foreign):
        file = TESTS / "lab" / "agents" / f"test_{name.replace('-', '_')}.py"
        assert file.exists(), f"{name} has no test: write {file.relative_to(TESTS.parent)}"
        assert "(EveryAgent):" in file.read_text(), f"{file.name}: class TestX(EveryAgent): name = {name!r}"


def test_every_public_name_is_documented():
    in_rooms = [f"{room}.{name}" for room in sorted(ROOMS) for name in getattr(beliefbound, room).__all__]
    for name in sorted(HOME) + in_rooms:
        thing = attrgetter(name)(beliefbound)
        assert thing.__doc__, f"{name} has no docstring"
        assert len(thing.__doc__.strip()) > 20, f"{name} is hardly documented"
        is_error = isinstance(thing, type) and issubclass(thing, Exception)
        holds_results = getattr(thing, "__name__", "") in RESULTS
        assert is_error or holds_results or ">>>" in thing.__doc__, f"{name} has no runnable example"


def test_every_module_and_public_function_says_what_it_is_for(trees):
    for path in MODULES:
        tree = trees[path]
        assert ast.get_docstring(tree), f"{path.relative_to(SOURCE)} has no docstring"
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{path.relative_to(SOURCE)}: {node.name} has no docstring"


def test_the_reference_has_every_public_name():
    names = set(beliefbound.__all__) - ROOMS
    names |= {f"{room}.{name}" for room in ROOMS for name in getattr(beliefbound, room).__all__ if name not in names}
    page = (TESTS.parent / "docs" / "api.md").read_text()
    assert sorted(re.findall(r"^\.\. auto\w+:: beliefbound\.([\w.]+)$", page, re.M)) == sorted(names)


def test_public_names_are_few_and_live_where_the_stub_says():
    assert sorted(beliefbound.__all__) == sorted({*HOME, *ROOMS})
    assert len(beliefbound.__all__) <= 56
    assert {"beliefs", "bounds", "theory"} == ROOMS
    for name, module in HOME.items():
        assert getattr(import_module(f"beliefbound.{module}"), name) is getattr(beliefbound, name)


@pytest.mark.parametrize("code", ["import beliefbound", "import beliefbound.cli"])
def test_import_loads_no_heavy_library(code):
    heavy = ["numba", "scipy", "matplotlib", "polars", "gymnasium"]
    probe = f"{code}; import sys; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_kernel_says_whether_its_sums_may_be_reordered_and_whether_it_is_inlined():
    """A kernel that does not inherits its caller's answer: its bits and speed depend on who was compiled first."""
    count = 0
    for path in (path for path in MODULES if {"kernels", "engine", "agents"} & set(path.parts)):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        module = import_module(".".join(("beliefbound", *parts)).removesuffix(".__init__"))
        for name, thing in vars(module).items():
            if hasattr(thing, "targetoptions") and thing.py_func.__module__ == module.__name__:
                count += 1
                inlined = thing.targetoptions.get("inline") == "always"  # compiled as part of its caller
                said = {"fastmath", "forceinline"} <= set(thing.targetoptions)
                assert inlined or said, f"{module.__name__}.{name}"
    assert count > 100


def referred(text: str) -> set[str]:
    """The names, dotted or with slashes, between backticks: `bounds.steps`, `bounds/{steps,record}.py`."""
    found = set()
    for name in re.findall(r"`([a-z_][\w./]*(?:\{[\w,]+\})?[\w./]*)`", text):
        first, _, rest = name.partition("{")
        middle, _, last = rest.partition("}")
        found |= {first + each + last for each in middle.split(",") if "/" in name or "." in name}
    return found


def is_there(name: str) -> bool:
    """Whether a name that looks like a path, a module or a part of one is that of something."""
    parts = re.split(r"[./]", name.removeprefix("beliefbound.").strip("/"))
    if "/" in name:
        parts = parts[:-1] if parts[-1] in ("py", "md", "toml") else parts
        folders = {path.name for top in (ROOT, SOURCE, TESTS) for path in top.iterdir() if path.is_dir()}
        tops = (ROOT, SOURCE, TESTS) if parts[0] in folders else ()
    elif parts[-1] in FILES or len(parts) == 1:
        return True
    else:
        if parts[0] in INNER and parts[1] in STEMS:
            return False  # a module, but not by its whole place
        tops = (SOURCE,) if (SOURCE / parts[0]).is_dir() else ()
    return not tops or any(_is_below(top, parts) for top in tops)


def _is_below(top: Path, parts: list[str]) -> bool:
    place, home = top.joinpath(*parts), top.joinpath(*parts[:-1])
    if place.is_dir() or place.with_suffix(".py").exists() or place.with_suffix(".md").exists():
        return True
    texts = [file for file in (home.with_suffix(".py"), home / "__init__.py", home / "__init__.pyi") if file.exists()]
    return any(re.search(rf"\b{parts[-1]}\b", file.read_text()) for file in texts)


def test_modules_and_paths_that_texts_name_exist():
    """In every docstring and comment, in ARCHITECTURE.md and in CONTRIBUTING.md, between backticks."""
    for path in [*MODULES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]:
        gone = sorted(name for name in referred(path.read_text()) if not is_there(name))
        assert not gone, f"{path.relative_to(ROOT)} names {gone}, which are not there"


def test_a_name_of_nothing_is_found():
    text = "`bounds.gone`, `bounds/{steps,gone}.py`, `graph.search`, `planning.task.Gone`, `tests/gone`; `models.csv`"
    assert sorted(name for name in referred(text) if not is_there(name)) == [
        "bounds.gone",
        "bounds/gone.py",
        "graph.search",
        "planning.task.Gone",
        "tests/gone",
    ]


def sentences_asked(node):
    """Every `method` that is compared with something, or searched in."""
    asked = []
    if isinstance(node, ast.Compare) and any(isinstance(x, ast.In | ast.NotIn | ast.Eq) for x in node.ops):
        asked = [node.left, *node.comparators]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        named = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
        asked = node.args if named else [node.func.value] if node.func.attr in ("startswith", "find") else []
    return [x for x in asked if isinstance(x, ast.Attribute) and x.attr == "method"]


def test_nothing_searches_in_a_sentence(trees):
    """No comparison with, and no pattern over, a `method`."""
    assert len(trees) > 300
    assert sentences_asked(ast.parse('bound.method == "QMDP"', mode="eval").body)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            assert not sentences_asked(node), (
                f"{path.relative_to(SOURCE)}:{node.lineno} decides by the words of a method"
            )


def test_bounds_do_not_ask_which_class_a_policy_is(trees):
    """Policies answer for themselves (`bounds.policies`); equality is the one place for classes."""
    for path, tree in below(trees, "bounds"):
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        equal = {id(inner) for node in functions if node.name == "__eq__" for inner in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                names = {x.id for x in ast.walk(node.args[1]) if isinstance(x, ast.Name)}
                switches = {name for name in names if name.endswith("Policy")}
                allowed = id(node) in equal or (path.name == "policies.py" and switches == {"Policy"})
                assert not switches or allowed, f"{path.relative_to(SOURCE)}:{node.lineno} asks for {switches}"


def test_frozen_bounds_stay_as_they_were_made(trees):
    """Nothing sets a field of a frozen result but its own `__post_init__`."""
    for path, tree in below(trees, "bounds"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == "__setattr__":
                inside = [f.name for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and node in ast.walk(f)]
                assert inside in (["__post_init__"], ["_check"]), f"{path.name}:{node.lineno}"


STUMBLED = (
    r"rungs? of|foretell|on the prior's word|one more draw of|pays for values|whomever|models worth believing|"
    r"that was earned|told which of two models, |before acting are worth|\ba information|by luck"
)


def test_sentences_use_the_words_of_the_field():
    """Phrases that readers stumbled over, wherever a person may see them."""
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.html"), *(ROOT / "docs").glob("*.md")]:
        found = re.findall(STUMBLED, path.read_text(encoding="utf-8"), re.I)
        assert not found, f"{path}: {found}"
