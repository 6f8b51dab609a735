# Every target sets itself up: it creates .venv and installs what it needs.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= auto

.PHONY: demo test lint bench mutants clean

demo: .venv/.demo
	$(BIN)/python -m experiments.demo

test: .venv/.test
	$(BIN)/python -m pytest -n $(WORKERS)

lint: .venv/.lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/.bench
	$(BIN)/python -m experiments.benchmarks.bench

mutants: .venv/.mutants
	$(BIN)/python -m mutmut run
	$(BIN)/python -m tests.mutation_score

clean:
	rm -rf .venv build dist out *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	touch $@
