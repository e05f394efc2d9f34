# Everything here works on a machine with only Python >= 3.11 and make: each target creates the
# virtual environment it needs and refreshes it when pyproject.toml or the version changes.

PYTHON ?= python3
# What `make test-torch` hands to pip, for a build other than the default: make test-torch TORCH=torch==2.4.0
TORCH ?= torch
# Test processes: a number, or auto for one per core.
WORKERS ?= auto
# Further arguments for pytest: make test-slow ARGS="-x -k nystroem"
ARGS ?=
# Places at which `make test-mutation` plants a fault.
FAULTS ?= 400
# Cases that `make fuzz` draws, and their seed.
CASES ?= 5000
SEED ?= 0

VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' src/kernelmetric/__init__.py 2>/dev/null)
STAMP := .stamp-$(VERSION)
BIN := .venv/bin
EXTRAS := .[cli,plot,pandas]
OLDEST := tests/constraints-oldest.txt

# Three layers in one environment, so that `make demo` waits only for what it uses.
RUN := .venv/$(STAMP)-run
DEV := .venv/$(STAMP)-dev
DOCS := .venv/$(STAMP)-docs

# One thread per worker: two thread pools on one core are slower than one. Bytecode is written, whatever
# the machine says: else every process that a test starts compiles the library again.
PYTEST_ENV := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 MPLBACKEND=Agg PYTHONDONTWRITEBYTECODE=
PYTEST := -m pytest -n $(WORKERS) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help demo test lint format typecheck docstrings pytest test-oldest test-torch test-peers test-paper \
	test-all sizes fuzz test-slow test-mutation test-browser reproduce bench bench-quick import-time docs wheel release-check hooks clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(RUN) ## Watch linear learners and their kernel versions compete (minutes)
	$(BIN)/kernelmetric demo

test: lint typecheck pytest ## All that CI runs: lint, import layers, types, docstrings, tests, doctests

lint: $(DEV) ## Check style, formatting, the import layers and the spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/codespell

format: $(DEV) ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

typecheck: $(DEV) ## Check the types
	$(BIN)/mypy --num-workers auto

docstrings: $(DEV) ## Check the docstrings of the public API alone (part of test)
	$(BIN)/python -m pytest $(ARGS) tests/test_docstrings.py

pytest: $(DEV) ## Run the tests, docstring checks and doctests alone (part of test)
	$(PYTEST_ENV) $(BIN)/python $(PYTEST) $(ARGS)

test-oldest: .venv-oldest/$(STAMP) ## Run the tests with the oldest supported versions
	$(PYTEST_ENV) .venv-oldest/bin/python $(PYTEST) $(ARGS)

test-torch: .venv-torch/$(STAMP) ## Run the tests that need torch
	MPLBACKEND=Agg .venv-torch/bin/python -m pytest -m torch $(ARGS)

test-peers: .venv-metric-learn/$(STAMP) ## Run the tests that kernelize metric-learn's learners
	$(PYTEST_ENV) .venv-metric-learn/bin/python -m pytest -m peers $(ARGS) tests/test_peers.py

test-paper: $(DEV) ## Reproduce the papers' numbers that are tests (reads KERNELMETRIC_DATA)
	@test -n "$$KERNELMETRIC_DATA" || echo "KERNELMETRIC_DATA is not set: cells whose data" \
		"is found nowhere else are listed below as SKIPPED."
	$(PYTEST_ENV) $(BIN)/python $(PYTEST) -m paper $(ARGS)

test-all: test test-slow fuzz ## All of it: what CI runs, the tests that take minutes, and the fuzzer

sizes: $(DEV) ## Check what the documentation says about sizes, times and memory (minutes)
	$(BIN)/python tools/check_sizes.py $(ARGS)

fuzz: $(DEV) ## Fit drawn estimators to drawn data with drawn parameters (CASES=5000, SEED=0)
	$(PYTEST_ENV) $(BIN)/python tools/fuzz.py --cases $(CASES) --seed $(SEED) $(ARGS)

test-slow: $(DEV) ## Run the tests that take minutes
	$(PYTEST_ENV) $(BIN)/python $(PYTEST) -m slow $(ARGS)

test-mutation: $(DEV) ## Plant faults in the code and see whether a test notices (an hour; FAULTS=400)
	$(BIN)/python -m pip install --quiet --group mutation
	$(BIN)/python benchmarks/mutation.py plan --faults $(FAULTS)
	$(BIN)/python benchmarks/mutation.py cover
	$(BIN)/python benchmarks/mutation.py run

test-browser: $(DEV) ## Try the report page in a real browser (installs Debian's chromium if there is none)
	@command -v chromium chromium-browser google-chrome >/dev/null || { \
		echo "Installing chromium from Debian ..."; \
		if [ "$$(id -u)" = 0 ]; then SUDO=; else SUDO=sudo; fi; \
		$$SUDO apt-get update -qq && $$SUDO apt-get install -y -qq --no-install-recommends chromium; }
	MPLBACKEND=Agg $(BIN)/python -m pytest -m browser $(ARGS)

reproduce: $(DEV) ## Run the papers' tables and figures (hours; resumes), and write docs/reproduction.md
	@test -n "$$KERNELMETRIC_DATA" || echo "KERNELMETRIC_DATA is not set: cells whose data is" \
		"found nowhere else are skipped, with a sentence."
	$(BIN)/python -m reproduction all --out reproduction-output --jobs -1
	$(BIN)/python -m reproduction.documentation reproduction-output

bench: $(DEV) .venv-peers/.stamp ## Run the benchmarks beside the peers, and write their pages (hours)
	$(BIN)/python benchmarks/run.py $(ARGS)
	$(BIN)/python benchmarks/default.py --out benchmarks/default.jsonl --page docs/default.md
	$(BIN)/python benchmarks/many_machines.py --page docs/measurements/many_machines.md
	$(BIN)/python benchmarks/many_machines_model.py docs/_static/many-machines.png --page docs/measurements/many_machines.md

bench-quick: $(DEV) ## Run the benchmarks on small sizes
	$(BIN)/python benchmarks/run.py --quick $(ARGS)

import-time: $(RUN) ## Compare the import time with that of sklearn.neighbors
	$(BIN)/python benchmarks/import_time.py

docs: $(DOCS) ## Build the documentation into docs/_build/html and run its examples
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -q -b doctest docs docs/_build/doctest
	@echo "Open docs/_build/html/index.html"

wheel: $(RUN) ## Build the wheel into dist/
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

release-check: .venv-release/.stamp ## Build a release, install it into an empty environment, and try it there
	.venv-release/bin/python tools/release_check.py $(ARGS)

hooks: $(DEV) ## Run the fast part of CI before each git commit
	$(BIN)/python -m pip install --quiet --group hooks
	$(BIN)/pre-commit install

clean: ## Remove all that make created, environments included
	rm -rf .venv .venv-oldest .venv-torch .venv-peers .venv-metric-learn .venv-release dist build docs/_build docs/api docs/gallery \
		docs/sg_execution_times.rst docs/_api_by_room.md \
		.pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis demo-output \
		mutation-output
	find src reproduction tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

# --- environments -------------------------------------------------------------------------------

# Dependency groups need pip 25.1, newer than what some Pythons bring: the environment upgrades its
# own pip and leaves the system's alone.
define create_venv
@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "kernelmetric needs \
Python >= 3.11, but $(PYTHON) is " + sys.version.split()[0] + ". Name a newer one: make $(or \
$(MAKECMDGOALS),test) PYTHON=python3.12")'
@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "$(PYTHON) cannot create environments:" \
	"install its venv package (python3-venv on Debian and Ubuntu)."; exit 1; }
@echo "Setting up $(1) (once; a minute or so) ..."
@rm -f $(1)/.stamp-*
@$(PYTHON) -m venv $(1)
@$(1)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
endef

$(RUN): pyproject.toml hatch_build.py src/kernelmetric/compute/backends/_native.c
	$(call create_venv,.venv)
	$(BIN)/python -m pip install --quiet --editable "$(EXTRAS)"
	@touch $@

$(DEV): $(RUN)
	$(BIN)/python -m pip install --quiet --group test --group lint
	@touch $@

$(DOCS): $(RUN)
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

.venv-oldest/$(STAMP): pyproject.toml $(OLDEST)
	$(call create_venv,.venv-oldest)
	.venv-oldest/bin/python -m pip install --quiet --editable "$(EXTRAS)" --group test --constraint $(OLDEST)
	@touch $@

.venv-torch/$(STAMP): pyproject.toml
	$(call create_venv,.venv-torch)
	.venv-torch/bin/python -m pip install --quiet --editable "$(EXTRAS)" --group test $(TORCH)
	@touch $@

# metric-learn 0.7 and this library meet on scikit-learn 1.6: older ones are not ours, newer not its.
.venv-metric-learn/$(STAMP): pyproject.toml
	$(call create_venv,.venv-metric-learn)
	.venv-metric-learn/bin/python -m pip install --quiet --editable . --group test "metric-learn==0.7.0" \
		"scikit-learn==1.6.1" "numpy<2" "scipy<1.16"
	@touch $@

# metric-learn fails on current scikit-learn, mlpack on current NumPy: they get the last ones they run on.
.venv-peers/.stamp:
	$(call create_venv,.venv-peers)
	.venv-peers/bin/python -m pip install --quiet "metric-learn==0.7.0" "scikit-learn==1.5.2" "numpy<2" \
		"pandas<2.3" mlpack
	@touch $@

.venv-release/.stamp: pyproject.toml
	$(call create_venv,.venv-release)
	.venv-release/bin/python -m pip install --quiet --group release
	@touch $@
