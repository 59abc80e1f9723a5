# Needs Python 3.10 or newer with pip and venv; everything else is installed into .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test install bench clean

demo: install  ## Train on 4Shapes for minutes on a CPU, score the model and draw what it sees.
	$(BIN)/rotating-features train 4shapes --preset quick --name demo --resume

test: install  ## What CI runs: lint, types, tests.
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto

bench: install  ## Each thing against its peer, on this machine; rows go to benchmarks/results.
	$(BIN)/rotating-features bench

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv
