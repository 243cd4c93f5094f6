# make demo | test | lint | docs | bench | clean
# Each target installs what it needs into .venv first. Needed beforehand: Python >= 3.11,
# make and git. Another interpreter: make test PYTHON=/path/to/python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_ARGS ?=
TEST_ARGS ?=
BENCH_ARGS ?=

# Small matrices and two test processes: threads inside BLAS only get in the way.
export OMP_NUM_THREADS ?= 1
export MPLBACKEND ?= Agg
ifneq ($(wildcard ../shared/data),)
export SKDCF_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test lint docs bench clean
.NOTPARALLEL:
.DELETE_ON_ERROR:

demo: $(VENV)/with-plot,data
	$(BIN)/python -m skdcf $(DEMO_ARGS)

test: $(VENV)/with-test
	$(BIN)/python -m pytest -n 2 $(TEST_ARGS)

lint: $(VENV)/with-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The pages made from docstrings are made anew, so that none outlives its object.
docs: $(VENV)/with-docs
	rm -rf docs/generated
	$(BIN)/python -m pytest --doctest-glob='*.rst' docs/index.rst docs/guide
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

bench: $(VENV)/with-all
	$(BIN)/python benchmarks/run_all.py $(BENCH_ARGS)

clean:
	rm -rf $(VENV) build dist *.egg-info demo_output .pytest_cache .ruff_cache .hypothesis
	rm -rf docs/_build docs/generated docs/gallery docs/sg_execution_times.rst .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The file .venv/with-EXTRAS says that the package is installed with these extras.
$(VENV)/with-%: setup.cfg pyproject.toml | $(BIN)/pip
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	touch '$@'

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "skdcf needs Python 3.11 or newer, but '$(PYTHON)' is:" \
	    "$$($(PYTHON) --version 2>&1). Give one that is: make PYTHON=python3.12 ..."; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)
