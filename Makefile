# Everything a contributor or CI runs. `make` alone lists the targets.
.DEFAULT_GOAL := help
.PHONY: help setup java demo lint format types imports quick pytest test soak bench clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) java ## create .venv with everything that work and tests need

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

java: ## check for Java 17 or newer, which Spark needs
	@scripts/ensure-java

demo: setup ## extract, judge and publish 600 made-up partitions, then query them
	$(BIN)/sealbook demo

lint: $(STAMP) ## check style (ruff)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP) ## rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP) ## check types (mypy, strict)
	$(BIN)/mypy

imports: $(STAMP) ## check the import rules (import-linter)
	$(BIN)/lint-imports

quick: $(STAMP) lint types imports ## check style, types and imports, and run what needs neither Spark nor a server
	$(BIN)/pytest -q -n 2 tests/unit
	$(BIN)/pytest -q -n 2 tests/contract -k sqlite

pytest: $(STAMP) java ## run the tests
	$(BIN)/pytest -n 2 --dist loadgroup

test: setup lint types imports pytest ## all of the above: what CI runs

soak: setup ## stop every command at many moments, by both signals; stage with two pyarrows; half an hour
	$(BIN)/pytest -v tests/soak

bench: setup ## measure against peers; prints ratios
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m bench

clean: ## remove .venv and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist
