# Needs make and Python 3.11 to 3.13; everything else goes into .venv, in the versions of constraints.txt.
PYTHON ?= python3
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
LLAMA := .venv-llama
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
INPUTS := pyproject.toml constraints.txt
export BENCH

.DEFAULT_GOAL := help
.PHONY: help demo test slow real check bench docs venv constraints

help:
	@echo 'make demo         install into .venv, benchmark the built-in engine, show the summary'
	@echo 'make test         the everyday test suite: all but slow and real, a few minutes'
	@echo 'make slow         the slow tests: each fault by itself, the tutorials, interrupts at every moment'
	@echo 'make real         tests against llama.cpp with a tiny model, in a venv of its own (100 MB)'
	@echo 'make check        formatting, lint, types'
	@echo 'make bench        measure loadstone itself against its bars (BENCH=smoke: a short one)'
	@echo 'make docs         write the pages that are made from the code'
	@echo 'make venv         .venv with everything a developer needs'
	@echo 'make constraints  the newest versions of everything, as constraints.txt'

demo: $(VENV)/.base
	@$(BIN)/loadstone profile --url sim: --streaming --isl 128 --osl 32 \
		--extra-inputs ignore_eos:true --concurrency 8 --request-count 80

# A file stays with one process, since its tests look at the same runs.
test: $(VENV)/.dev
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile -m 'not real and not slow'

slow: $(VENV)/.dev
	@$(BIN)/python -m pytest -q -n $(JOBS) -m 'slow and not real'

# One test at a time: the server is to be measured, not the machine.
real: $(VENV)/.dev $(LLAMA)/.ready
	@$(BIN)/python -m pytest -q -m real

check: $(VENV)/.dev
	@$(BIN)/ruff format --check -q .
	@$(BIN)/ruff check -q .
	@$(BIN)/mypy

bench: $(VENV)/.dev
	@$(BIN)/python -m bench

docs: $(VENV)/.dev
	@$(BIN)/python docs/generate.py

venv: $(VENV)/.dev

# Imports without bytecode cost twice the CPU, also in an editable install: so it is compiled here.
$(VENV)/.base: $(INPUTS) | $(BIN)/python
	@echo 'installing loadstone into $(VENV)'
	@$(PIP) install -c constraints.txt -e .
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/.dev: $(INPUTS) | $(BIN)/python
	@echo 'installing loadstone and its development tools into $(VENV)'
	@$(PIP) install -c constraints.txt -e '.[dev]'
	@$(BIN)/python -m compileall -q src
	@touch $@ $(VENV)/.base

$(LLAMA)/.ready: tests/real/requirements.txt | $(BIN)/python
	@echo 'installing llama.cpp into $(LLAMA)'
	@$(BIN)/python -m venv --clear $(LLAMA)
	@$(LLAMA)/bin/python -m pip --disable-pip-version-check -q install --only-binary=:all: -r $<
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
		{ echo 'loadstone needs Python 3.11 to 3.13; name one: make PYTHON=python3.12'; exit 1; }
	@$(PYTHON) -m venv $(VENV)

constraints:
	@rm -rf build/constraints
	@$(PYTHON) -m venv build/constraints
	@build/constraints/bin/python -m pip -q install -e '.[dev]'
	@{ echo '# Made by `make constraints`: what `make` installs, so that two machines have the same.'; \
		build/constraints/bin/python -m pip freeze --exclude-editable; } > constraints.txt
	@rm -rf build/constraints
