# Two commands for a newcomer: `make demo` and `make test`. Each sets up all it needs in .venv first.
# Needed before: python3 >= 3.11 with its venv module, make, and a network to a Python package index.

SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
STORE ?= demo-store
LIVE_STORE ?= live-demo-store
TEST_ARGS ?=

# Imports are several times faster with compiled bytecode; some images switch it off for all processes.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo live-setup live-demo test lint lock perf-setup figures clean distclean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | awk -F '\t' '{ printf "make %-10s %s\n", $$1, $$2 }'

setup: .venv/.ready ## the environment in .venv, exactly as locked

demo: .venv/.ready ## the starter study on a simulated model: no key, no cost; again: it resumes
	@$(BIN)/evalnoise run studies/starter.yaml --store $(STORE)

live-setup: .venv-live/.ready ## a small model and a server for it, in .venv-live (half a minute, 220 MB)

live-demo: .venv/.ready ## a real model on this machine, measured: 15 minutes, no key, no cost; skipped where it cannot be installed
	@$(MAKE) --no-print-directory .venv-live/.ready || true
	@$(BIN)/python -m perf.local_model --store $(LIVE_STORE) $(LIVE_ARGS) || { code=$$?; [ $$code -eq 77 ] || exit $$code; }

# Three processes, because most tests wait for a server, a container or a disk: what needs the engine for containers (some tests stop
# it, so no other process uses it), what needs a Prefect server with the stages of studies, and the rest.
flow_tests = $(foreach name,$(1),tests/flows/test_$(name).py)
WITH_ENGINE := tests/verifiers tests/tasks/test_reverify.py $(call flow_tests,checkers cli_doctor local_model run)
WITH_SERVER := $(call flow_tests,cli_exit_codes cli_interrupt kill max_cost outage paid planted_keys rerun schedules server) \
  $(filter-out $(WITH_ENGINE),$(wildcard tests/tasks/test_*.py))
test: .venv/.ready ## every test, in three processes; TEST_ARGS="-k budget" for some, in one
ifdef TEST_ARGS
	$(BIN)/pytest $(TEST_ARGS)
else
	@$(BIN)/pytest $(WITH_SERVER) >.tests-with-server 2>&1 & server=$$!; \
	$(BIN)/pytest $(patsubst %,--ignore=%,$(WITH_SERVER) $(WITH_ENGINE)) >.tests-with-neither 2>&1 & neither=$$!; \
	$(BIN)/pytest $(WITH_ENGINE); failed=$$?; \
	wait $$server || failed=1; wait $$neither || failed=1; \
	cat .tests-with-server .tests-with-neither; rm -f .tests-with-server .tests-with-neither; \
	exit $$failed
endif

lint: .venv/.ready ## style, types, and which room may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

perf-setup: .venv-perf/.ready ## the environment of the evaluator that perf compares with, in .venv-perf (about a minute, 800 MB)

figures: .venv/.ready .venv-perf/.ready ## measure every figure that the documentation states, and print them
	$(BIN)/python -m perf.figures

UV_COMPILE := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header
lock: .venv/.ready ## resolve the lock files anew; LOCK_ARGS=--upgrade for newer versions
	$(UV_COMPILE) $(LOCK_ARGS) --group bootstrap -o requirements-bootstrap.lock
	$(UV_COMPILE) $(LOCK_ARGS) --group dev pyproject.toml -o requirements.lock
	$(UV_COMPILE) $(LOCK_ARGS) --group perf -o requirements-perf.lock
	$(UV_COMPILE) $(LOCK_ARGS) --no-deps --group live -o requirements-live.lock

clean: ## remove caches and builds; results and .venv stay
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean ## the same, and remove .venv, .venv-perf and .venv-live
	rm -rf .venv .venv-perf .venv-live

# pip installs nothing but uv, by hash; uv installs the locked rest in seconds. Where uv cannot reach the index although pip
# could (pip's own certificates, proxies or mirrors), pip does it all. Both install the project last, from the locked backend.
SYNC := $(BIN)/uv pip sync -q --python $(BIN)/python --require-hashes --compile-bytecode requirements-bootstrap.lock requirements.lock
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check
.venv/.ready: requirements.lock requirements-bootstrap.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "evalnoise needs Python 3.11 or newer, and there is no $(PYTHON). Name one: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "evalnoise needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "$(PYTHON) lacks its venv module. On Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "Setting up .venv from the lock files (about a minute with a cold cache)"
	@$(BIN)/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || $(PYTHON) -m venv --clear .venv
	@$(PIP) --require-hashes -r requirements-bootstrap.lock
	@$(SYNC) || { echo "uv could not install the packages; trying pip, which takes longer" >&2; $(PIP) --require-hashes -r requirements.lock; }
	@$(BIN)/uv pip install -q --python $(BIN)/python --offline --no-deps --no-build-isolation --editable .
	@touch $@

# Two of its packages have no wheel; they are built with the index's newest setuptools, which no hash pins.
.venv-perf/.ready: requirements-perf.lock | .venv/.ready
	@echo "Setting up .venv-perf from its lock file (about a minute with a cold cache)"
	@$(BIN)/python -m venv --clear .venv-perf
	@$(BIN)/uv pip sync -q --python .venv-perf/bin/python --require-hashes --compile-bytecode requirements-perf.lock || { \
	  echo "uv could not install the packages; trying pip, which takes longer" >&2; \
	  .venv-perf/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-perf.lock; }
	@touch $@

# Wheels alone: where there is none for this machine, a server is not compiled. The environment is complete or is not there.
.venv-live/.ready: requirements-live.lock | .venv/.ready
	@echo "Setting up .venv-live from its lock file (half a minute with a cold cache)"
	@$(BIN)/python -m venv --clear .venv-live
	@$(BIN)/uv pip sync -q --python .venv-live/bin/python --require-hashes --no-build --compile-bytecode requirements-live.lock || { \
	  echo "uv could not install the packages; trying pip" >&2; \
	  .venv-live/bin/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps --only-binary :all: \
	    -r requirements-live.lock; } || { rm -rf .venv-live; exit 1; }
	@touch $@
