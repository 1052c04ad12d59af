# Every target builds .venv itself, with what that target needs: python3 (3.11 or newer) and make are all it takes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PYTHONDONTWRITEBYTECODE :=
export MPLBACKEND := Agg

.NOTPARALLEL:
.PHONY: setup test test-all lint bench soak paper docs clean

# What running needs, what the first tier of tests adds, and all there is. Whoever has more has less, too.
RUN := $(VENV)/.run
DEV := $(VENV)/.dev
ALL := $(VENV)/.all

setup: $(ALL)

$(RUN): pyproject.toml constraints.txt
	$(call install,.[lab])
	@touch $(RUN)

$(DEV): pyproject.toml constraints.txt
	$(call install,.[dev])
	@touch $(RUN) $(DEV)

$(ALL): pyproject.toml constraints.txt
	$(call install,.[all])
	@touch $(RUN) $(DEV) $(ALL)

# The pip that Pythons bring takes twice the time to find packages. Bytecode comes with the first import, of what is imported.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
define install
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	$(PIP) -e '$(1)'
endef

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

# The first tier: what compiles little, and one of everything; types are checked beside it, and shown after it.
# The second: the rest, after the first.
test: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@types=$$(mktemp) && { $(BIN)/mypy > $$types 2>&1 & checked=$$!; \
	$(PYTEST) -m 'not full'; tested=$$?; \
	wait $$checked; typed=$$?; cat $$types; rm -f $$types; exit $$((tested ? tested : typed)); }

test-all: test $(ALL)
	$(PYTEST) -m full

bench: $(ALL)
	$(BIN)/python -m benchmarks

# Rough treatment for as long as you like: make soak KILLS=500 CALLS=1000000
KILLS ?= 50
CALLS ?= 100000
INSTANCES ?= 10000
soak: $(DEV)
	$(BIN)/python -m soak.kills --kills $(KILLS)
	$(BIN)/python -m soak.crowded --rounds $(KILLS)
	MPLBACKEND=Agg $(BIN)/python -m soak.fuzz --calls $(CALLS)
	$(BIN)/python -m soak.scales --instances $(INSTANCES)
	$(BIN)/python -m soak.signals --instances $(INSTANCES)

paper: $(RUN)
	$(BIN)/beliefbound paper --out paper-out

docs: $(ALL)
	$(BIN)/python -m sphinx -q -W -b html docs docs/_build
	@echo docs/_build/index.html

clean:
	rm -rf $(VENV) build dist docs/_build .mypy_cache .ruff_cache
	find src -name '*.nb[ic]' -delete
