# Nothing but Linux, make, Python 3.11+ and pip is needed: every target makes its own virtual environment.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# One more than there are cores: tests of networks and processes wait a part of their time.
WORKERS ?= $(shell expr $$(nproc) + 1)
# Bytecode is kept: without it every process that a test starts would compile all sources anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo demo-network test lint types check bench papers shape mutants fuzz faults audit-long clean help
help:
	@echo "make demo   three clinics cluster their patients together (a minute)"
	@echo "make demo-network  the same as four processes that talk over TLS"
	@echo "make test   lint, types, all tests and the slowest ten (under ten minutes on two cores)"
	@echo "make bench  the measurements of docs/benchmarks.md"
	@echo "make shape  the marks of the source tree's shape"
	@echo "make mutants  plants the known faults and COUNT new ones in a copy of the sources, and tests each (hours)"
	@echo "make fuzz    damages ten million messages in sessions, and as many at codecs and parsers (an hour or two)"
	@echo "make faults  kills processes, fails disks and cuts links ten thousand times (an hour or two)"
	@echo "make audit-long  the audits that take long, a million runs where runs are cheap (hours)"
	@echo "make papers the papers' figures and tables, quickly (some minutes)"

$(VENV)/base: pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else "Cloister needs Python 3.11 or newer; got %d.%d. Run: make PYTHON=python3.11" % v[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[net,report]"
	$(BIN)/python -m compileall -q src/cloister
	@touch $@

$(VENV)/test: $(VENV)/base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test]"
	@touch $@

demo: $(VENV)/base
	@$(BIN)/cloister demo

demo-network: $(VENV)/base
	@$(BIN)/cloister demo --network

lint: $(VENV)/test
	$(BIN)/ruff check src papers tests bench tools
	$(BIN)/ruff format --check src papers tests bench tools

types: $(VENV)/test
	$(BIN)/mypy

check: $(VENV)/test
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --durations=10

test: lint types check

bench: $(VENV)/test
	$(BIN)/python -m bench

shape: $(VENV)/test
	$(BIN)/python -m tools.shape

# SEED chooses the new ones: any text; HEAD is the hash of the last commit. A run goes on where the last one stopped.
mutants: $(VENV)/test
	$(BIN)/python -m tools.mutants --named
	$(BIN)/python -m tools.mutants --seed $(or $(SEED),HEAD) --count $(or $(COUNT),150)

# Each of these goes on where its last run stopped: what it did is in build/.
fuzz: $(VENV)/test
	@mkdir -p build
	$(BIN)/python -m bench.fuzz --sessions 10000000 --sealed 100000 --direct 10000000 --out build/fuzz.jsonl

faults: $(VENV)/test
	@mkdir -p build
	$(BIN)/python -m bench.faults --out build/faults.jsonl

# One thread: many small products are slower with two, and far slower beside other work.
audit-long: export OPENBLAS_NUM_THREADS := 1
audit-long: $(VENV)/test
	$(BIN)/python -m tools.audit_long
	$(BIN)/python -m tools.audit_long --table

papers: $(VENV)/test
	$(BIN)/python -m papers fastlloyd --quick
	$(BIN)/python -m papers secfc --quick
	$(BIN)/python -m papers feddp --quick

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
