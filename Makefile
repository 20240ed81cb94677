# Every target sets up what it needs by itself, in .venv, and is quick when nothing changed.
#   make conformance   the suite's smoke profile on the reference device, with a summary
#   make test          what CI runs
#   make test-long     stress and whole sweeps; resumable, results stay in runs/
#   make lint          ruff and mypy
#   make bench         ratios taken in one run, with plots, in runs/benchmarks

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
JOBS   ?= $(shell nproc)
BIN    := $(VENV)/bin

.DEFAULT_GOAL := conformance
.PHONY: conformance test test-long lint bench device setup clean

conformance: device
	$(BIN)/torch-conformance run --backend neuron_ref --profile smoke -n $(JOBS)

test: device
	$(BIN)/python -m pytest -n $(JOBS) -m "not long"

# Whole sweeps first: their run folders are resumed, not repeated, when the command is given again.
test-long: device
	$(BIN)/torch-conformance run --backend neuron_ref --profile full -n $(JOBS) --resume
	$(BIN)/torch-conformance run --backend cpu --profile full -n $(JOBS) --resume
	$(BIN)/uncuda verify --backend neuron_ref
	$(BIN)/python -m pytest -m long

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: device
	$(BIN)/python benchmarks/run.py

setup: $(VENV)/.installed

# torch first and by itself: with it in place, no later requirement can bring in another one.
$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[reference,device,dev]'
	touch $@

# The build command does nothing when its stamp is current.
device: setup
	$(BIN)/python -m neuron_ref.build

clean:
	rm -rf $(VENV) build runs .cache .overlays reference_backend/neuron_ref/_C*.so
