# Needs python3 >= 3.10 and make; everything else goes into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
JOBS ?= 2 # tests at a time: more than there are cores upset those that measure

.PHONY: help demo test check schemas bench scenarios dist clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(VENV)/.local: pyproject.toml constraints.txt
	@echo "Setting up $(VENV): torch and transformers take a minute or two ..."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[local]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) for the tests: a minute or three ..."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[dev]'
	touch $@ $(VENV)/.local

demo: $(VENV)/.local ## set up, diagnose the built-in tiny model, name the report
	$(BIN)/perfdoctor diagnose --model tiny
	@echo "HTML report: $$(ls -td perfdoctor-runs/*/report.html | head -n 1)"

test: $(VENV)/.dev ## set up and run the whole test suite
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "not alone"
	$(BIN)/python -m pytest -q -m alone

check: $(VENV)/.dev ## format, lint, types, import contracts, the fast tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "not server and not slow" tests/unit tests/cases tests/contract

schemas: $(VENV)/.dev ## write the published JSON Schemas anew after a change of the types
	$(BIN)/python -m perfdoctor.reports._schemas

bench: $(VENV)/.dev ## ratios measured in one run; no limits enforced
	@for file in benchmarks/[a-z]*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

scenarios: $(VENV)/.dev ## cause each labelled fault for real and judge it (root, some minutes)
	$(BIN)/perfdoctor scenario run all

dist: $(VENV)/.dev ## wheel and sdist into dist/
	$(BIN)/python -m build --no-isolation

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache
