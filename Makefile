# Every target sets itself up: it creates .venv and installs what it needs.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= auto

.DEFAULT_GOAL := help
.PHONY: help demo test stress lint format docs coverage bench mutants release-check clean

help: ## list the targets
	@echo "Targets (each installs what it needs into .venv at its first use):"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1~\2/p' $(MAKEFILE_LIST) | awk -F'~' '{ printf "%-16s %s\n", $$1, $$2 }'

demo: .venv/.demo ## compare strategies in a small world: a table, two figures, and what they show
	$(BIN)/python -m experiments.demo

test: .venv/.test ## run the test suite; WORKERS=0 for one process
	$(BIN)/python -m pytest -n $(WORKERS)

stress: .venv/.test ## run the test suite with long fault and installation tests at full count
	SELECTENV_STRESS=1 $(BIN)/python -m pytest -n $(WORKERS)

lint: .venv/.lint ## check format, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: .venv/.lint ## format the code and fix what can be fixed automatically
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/.docs ## build the documentation site in build/docs/html; warnings and broken links are errors
	$(BIN)/python -m experiments.site

coverage: .venv/.test ## run the test suite and list the lines that it does not reach
	$(BIN)/python -m pytest -n $(WORKERS) --cov --cov-report=term-missing:skip-covered

bench: .venv/.bench ## measure the speed of every part
	$(BIN)/python -m experiments.benchmarks.bench

mutants: .venv/.mutants ## mutation testing of the comparison layer; resumes where it stopped
	$(BIN)/python -m mutmut run
	$(BIN)/python -m tests.mutation_score

release-check: .venv/.release ## build the source distribution and the wheel, and check what would be published
	rm -rf build dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m tests.release_check dist

clean: ## remove the environment, caches and everything that was written
	rm -rf .venv build dist out mutants *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.%: pyproject.toml
	@echo "Installing into .venv what '$*' needs; the first time takes one to several minutes, most of it downloads."
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --editable '.[$*]'
	touch $@
