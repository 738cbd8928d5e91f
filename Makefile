# Needs python3 >= 3.10 and make; everything else goes into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
FAST := $(BIN)/python -m pytest -q -m "not server and not slow"

.PHONY: help demo test test-units test-contracts check check-code check-contracts schemas bench scenarios dist clean
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
	@$(MAKE) --no-print-directory -j2 -O test-units test-contracts
	$(BIN)/python -m pytest tests/e2e

test-units: $(VENV)/.dev
	$(BIN)/python -m pytest -q tests/unit tests/cases

test-contracts: $(VENV)/.dev # these mostly wait, so they run beside the others
	$(BIN)/python -m pytest -q tests/contract

check: $(VENV)/.dev ## format, lint, types, import contracts, the fast tests
	@$(MAKE) --no-print-directory -j2 -O check-code check-contracts

check-code: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(FAST) tests/unit tests/cases

check-contracts: $(VENV)/.dev # these mostly wait, so they run beside the others
	$(FAST) tests/contract

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
