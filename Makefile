# make demo    installs what the demonstration needs and runs it (no key, no network after installation)
# make test    installs what the tests need and runs them, without the long suites and the conformance to shared fixtures
# make check   lint, types, architecture
# make docs    builds the site of the documentation into site/
#
# Each target makes .venv when it is not there and installs again only when pyproject.toml changed.

VENV ?= .venv
PYTHON := $(VENV)/bin/python
# One worker more than processors: some tests wait for a clock or a process, and each worker collects all tests.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PIP_FLAGS := --quiet --disable-pip-version-check
# What is installed: the checkout, or a wheel (make demo VENV=.venv-wheel SOURCE=dist/sigwire-0.1.0-py3-none-any.whl).
SOURCE ?= --editable .

# Without compiled files, each worker and each process of a test compiles the package again: a third more work.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check docs bench clean

demo: $(VENV)/.installed-demo
	$(PYTHON) examples/quickstart.py
	$(PYTHON) examples/stream_agent.py
	$(PYTHON) examples/resume_agent.py
	$(PYTHON) examples/team.py
	$(PYTHON) examples/long_session.py
	$(PYTHON) examples/optimize_extraction.py
	$(PYTHON) examples/optimize_tools.py

test: $(VENV)/.installed-test
	$(PYTHON) -m pytest -q --numprocesses $(WORKERS) --dist worksteal -m "not long" --ignore tests/conformance

check: $(VENV)/.installed-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/pyright --pythonpath $(PYTHON)
	$(VENV)/bin/lint-imports

docs: $(VENV)/.installed-docs
	$(VENV)/bin/zensical build --strict --clean
	$(PYTHON) docs/llms.py site

bench: $(VENV)/.installed-demo
	$(PYTHON) -m benchmarks

$(VENV)/.installed-%: pyproject.toml | $(PYTHON)
	@echo "Installing sigwire[$*] into $(VENV)"
	@$(PYTHON) -m pip install $(PIP_FLAGS) $(SOURCE)"[$*]"
	@touch $@

# The first interpreter of 3.11 or later; python3 is often older than a python3.X beside it. An environment whose interpreter
# has gone, or that was left half made, is made anew.
FORGET_VENV = if [ -f $(VENV)/pyvenv.cfg ]; then rm -rf $(VENV); fi

$(PYTHON):
	@$(FORGET_VENV); \
	for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	  if command -v $$candidate >/dev/null 2>&1 \
	    && $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    echo "Creating $(VENV) with $$($$candidate --version)"; \
	    $$candidate -m venv $(VENV) && exit 0; \
	    $(FORGET_VENV); \
	    exit 1; \
	  fi; \
	done; \
	echo "sigwire needs Python 3.11 or later; python3 here is $$(python3 --version 2>&1 || echo missing)." >&2; \
	echo "Install one (https://www.python.org/downloads/) and run make again." >&2; \
	exit 1

clean:
	rm -rf $(VENV) site .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
