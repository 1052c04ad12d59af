"""Run every benchmark that times something, or those named on the command line."""

import importlib
import pkgutil
import sys

import benchmarks

_NONE = ("__main__", "timing", "improvement", "improvement_worlds", "right_prior")  # by `python -m benchmarks.NAME …`
_BY_NAME = ("defaults",)  # chooses settings, and times nothing


def main() -> None:
    names = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in _NONE)
    asked = sys.argv[1:] or [name for name in names if name not in _BY_NAME]
    unknown = [name for name in asked if name not in names]
    if unknown:
        sys.exit(f"no benchmark called {unknown[0]!r}; there are {', '.join(names)}")
    for name in asked:
        print(f"\n== {name} " + "=" * (70 - len(name)))
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
