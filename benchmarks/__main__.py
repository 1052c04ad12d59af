"""Run every benchmark, or those named on the command line."""

import importlib
import pkgutil
import sys

import benchmarks

_NO_TIMINGS = ("__main__", "timing", "improvement", "improvement_worlds", "right_prior")


def main() -> None:
    names = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in _NO_TIMINGS)
    asked = sys.argv[1:] or names
    unknown = [name for name in asked if name not in names]
    if unknown:
        sys.exit(f"no benchmark called {unknown[0]!r}; there are {', '.join(names)}")
    for name in asked:
        print(f"\n== {name} " + "=" * (70 - len(name)))
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
