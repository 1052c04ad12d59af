# Every target builds .venv itself when it is missing: python3 (3.11 or newer) and make are all it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup test lint bench soak paper docs clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	PYTHONDONTWRITEBYTECODE= MPLBACKEND=Agg $(BIN)/python -m pytest -n auto --maxprocesses=4 --dist loadfile

bench: $(STAMP)
	MPLBACKEND=Agg $(BIN)/python -m benchmarks

# Rough treatment for as long as you like: make soak KILLS=500 CALLS=1000000
KILLS ?= 50
CALLS ?= 100000
INSTANCES ?= 10000
soak: $(STAMP)
	$(BIN)/python -m soak.kills --kills $(KILLS)
	$(BIN)/python -m soak.crowded --rounds $(KILLS)
	MPLBACKEND=Agg $(BIN)/python -m soak.fuzz --calls $(CALLS)
	$(BIN)/python -m soak.scales --instances $(INSTANCES)

paper: $(STAMP)
	$(BIN)/beliefbound paper --out paper-out

docs: $(STAMP)
	$(BIN)/python -m sphinx -q -W -b html docs docs/_build
	@echo docs/_build/index.html

clean:
	rm -rf $(VENV) build dist docs/_build .mypy_cache .ruff_cache
	find src -name '*.nb[ic]' -delete
