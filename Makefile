# make run    set up .venv and run the main job, then a real network: thirty car parks
# make test   set up .venv with everything; lint, type-check, test
# make docs   set up .venv with what the site needs; build it into build/site
# make docs-test  run the documents and the examples, build the site and check it
# make release VERSION=1.2.3  commit version, changelog, citation, list of parts and lock file; set no tag;
#             DRY=1 only says what it would do
# make dist   build wheel and sdist twice, compare them, install both into empty environments, and
#             run the unit and contract tests against the installed wheel
# make pythons  try the wheel under every supported Python that is here
# make numbas  try the wheel with one release of each supported Numba
# make licences  list the licences of what domkl needs
# make examples  run the examples, and write their pictures to docs/images/examples
# make quick  lint and test without real processes, documents and long runs; for while one writes
# make soak   set up .venv with everything; run the mesh through eleven thousand schedules of faults
# make attack set up .venv with everything; attack real nodes: HTTP, memory, floods, disk, kills;
#             search for the lies that cost most, in virtual time, on data that are there
# make fuzz   set up .venv with everything; fuzz what a node reads, by coverage, 5 minutes for each of 8
# make bench  set up .venv with everything; print speed as ratios: C, NumPy, DOMKL, River, processes,
#             and how it grows with learners, MPI ranks and nodes of a mesh
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# one more than there are cores: tests of real processes wait much of their time
WORKERS := $(shell $(PYTHON) -c 'import os; print(1 + (os.cpu_count() or 1))')
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
# in the order of the gallery
EXAMPLES := stations homes drift river_classifier newcomer mesh_heals own_algorithm sweep_polars mesh_mqtt
# tests of what one reads: `make docs-test` runs them, and `make test` leaves them out
DOCUMENTS := tests/test_docs.py tests/site

# tests start some hundred processes that load the package: its bytecode is stored for them
test quick docs-test: export PYTHONDONTWRITEBYTECODE =

.PHONY: run test docs docs-test examples release dist pythons numbas licences quick lint types soak attack fuzz bench clean

run: $(VENV)/run.stamp
	$(BIN)/domkl simulate
	$(BIN)/domkl simulate --data parking --trials 1 --algorithm domkrls --algorithm domkrls-alone \
		--algorithm linear-rls --algorithm last-value

test: lint types
	$(PYTEST) $(DOCUMENTS:%=--ignore=%)

docs: $(VENV)/docs.stamp
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/site
	@echo build/site/index.html

docs-test: $(VENV)/docs.stamp
	$(PYTEST) $(DOCUMENTS)

release: $(VENV)/dev.stamp
	$(BIN)/python tools/release.py $(VERSION) $(if $(DRY),--dry-run)

dist:
	$(PYTHON) tools/dist.py build
	$(PYTHON) tools/dist.py try
	$(PYTHON) tools/dist.py test

pythons:
	$(PYTHON) tools/dist.py pythons

numbas:
	$(PYTHON) tools/dist.py numbas

licences: $(VENV)/dev.stamp
	$(BIN)/python tools/licences.py --write
	cat docs/reference/licences.md

examples: $(VENV)/dev.stamp
	for each in $(EXAMPLES); do $(BIN)/python examples/$$each.py --out docs/images/examples || exit; done

quick: lint
	$(PYTEST) -m "not slow" --hypothesis-profile=quick

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev.stamp
	$(BIN)/mypy

soak: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/soak.py --schedules 9000
	$(BIN)/python benchmarks/soak.py --schedules 1000 --harsh
	$(BIN)/python benchmarks/soak.py --schedules 1000 --harsh --guard

attack: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/attack.py
	$(BIN)/python benchmarks/adversary.py --search 60
	$(BIN)/python benchmarks/adversary.py --scenes --rounds 500

fuzz: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/fuzz.py --seconds 300

bench: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/bench_speed.py
	$(BIN)/python benchmarks/bench_own.py
	$(BIN)/python benchmarks/bench_scaling.py
	$(BIN)/python benchmarks/bench_mpi.py
	$(BIN)/python benchmarks/bench_domkrls.py --speed
	$(BIN)/python benchmarks/bench_river.py
	$(BIN)/python benchmarks/bench_sweep.py
	$(BIN)/python benchmarks/bench_node.py
	$(BIN)/python benchmarks/bench_mesh.py

clean:
	rm -rf $(VENV) domkl-out

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("domkl needs Python >= 3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[mesh,reports,sklearn]'
	touch $@

$(VENV)/docs.stamp: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,docs]'
	touch $@

$(VENV)/dev.stamp: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@
