# Everything a contributor or CI runs. `make` alone lists the targets.
.DEFAULT_GOAL := help
.PHONY: help setup java chromium demo docs reference lint format types imports quick pytest test soak bench clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
STAMP := $(VENV)/.installed
SCALE ?= small

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) java chromium ## create .venv with everything that work and tests need

$(RUNS): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[console]'
	@touch $@

$(STAMP): $(RUNS) constraints-dbt.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	# Spark Connect needs pandas, which nothing else may come to need: it lies apart.
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --target $(VENV)/connect --upgrade 'pandas<3' zstandard
	# Airflow and dbt bring many packages, some of them older than ours: they lie apart, too.
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --target $(VENV)/airflow --upgrade apache-airflow
	$(BIN)/python -m pip install --quiet --constraint constraints-dbt.txt --target $(VENV)/dbt --upgrade dbt-duckdb
	@touch $@

java: ## check for Java 17 or newer, which Spark needs
	@scripts/ensure-java

chromium: ## check for Chromium, which the tests of the console need
	@scripts/ensure-chromium

demo: $(RUNS) java ## set up what running needs, and show the whole way of the data
	$(BIN)/sealbook demo

docs: $(STAMP) ## build the documentation as a site, into build/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

reference: $(STAMP) ## write the pages of docs/reference that come from the code
	$(BIN)/python -m scripts.reference

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

pytest: $(STAMP) java chromium ## run the tests
	$(BIN)/pytest -n 2 --dist loadgroup --durations 30

test: setup lint types imports pytest ## all of the above: what CI runs

soak: setup ## stop every command at many moments; kill loops, and let them live; stage with two pyarrows; an hour
	$(BIN)/pytest -v tests/soak

bench: setup ## measure against peers, and write docs/figures.md; an hour; longer with SCALE=full
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m bench --scale $(SCALE); ended=$$?; $(BIN)/python -m bench.page && exit $$ended

clean: ## remove .venv and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist
