# One command for each thing a newcomer wants; `make help` lists them.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Most tests wait for something, so that two workers keep a core busy. Simulations, fuzzing and planted bugs do not.
WORKERS ?= 4
JOBS ?= 2
SECONDS ?= 60
SEED ?=
PYTEST_ARGS ?=
# What is said to JupyterLab: make notebook NOTEBOOK_ARGS=--no-browser
NOTEBOOK_ARGS ?=
LOWEST := .venv-lowest
PRERELEASES := .venv-prereleases
# The tests of what talks to urllib3 and the official client, which move on without us.
PRERELEASE_TESTS := tests/transport tests/watching tests/discovery tests/conformance/informer tests/test_factory.py
NEWEST_PYTHON := .venv-3.14
BROWSER := .venv-browser
DEMO := .venv-demo
# Of the Python peers of make bench-peers; the others are in build/peers.
PEERS_VENV := .venv-peers
# What of it: make bench-peers PEERS="dyninformer kube-rs --objects 10000"
PEERS ?=
# Where pictures of what the browser shows are put: make browser PICTURES=docs/images
PICTURES ?=
# What runs it: make newest UNDER=tests/environments/hostile
UNDER ?=
# What of the simulation make check runs: some three minutes on two cores.
SEEDS ?= 0-1999
# Replicas that share shards: make sharing SHARING_SEEDS=1-10000 (half an hour on one core)
SHARING_SEEDS ?= 1-1000
# Bugs to plant: make mutants ONLY=queue
ONLY ?=
WRITE ?=
# Every room without what takes a real API server, minutes, or a machine to itself.
FAST := -m "not soak and not real" --ignore tests/conformance --ignore tests/simulation --ignore tests/test_benchmarks.py

.DEFAULT_GOAL := help
.PHONY: help demo notebook browser test check lint typecheck rooms docs simulation sharing mutants test-lowest test-hostile test-prereleases newest held-up environments wheel fuzz faults soak bench bench-peers kube clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(DEMO)/ready ## see it work: an embedded API server, examples/crd, and an informer on it
	@$(DEMO)/bin/dyninformer demo --manifests examples/crd

notebook: $(BROWSER)/ready ## open JupyterLab on examples/explore.ipynb, with a busy cluster behind it
	@$(BROWSER)/bin/python examples/notebook.py -- $(NOTEBOOK_ARGS)

browser: $(BROWSER)/ready ## drive JupyterLab, Notebook 7 and marimo in Chromium (Debian's package)
	DYNINFORMER_PICTURES=$(abspath $(PICTURES)) $(BROWSER)/bin/python -m pytest -q --durations 5 tests/browser $(PYTEST_ARGS)

test: $(VENV)/ready ## run every test but soak and benchmarks (real-server tests need KUBEBUILDER_ASSETS)
	$(BIN)/pytest -n $(WORKERS) -m "not soak" $(PYTEST_ARGS)

check: lint typecheck rooms docs test simulation ## lint, types, rooms, docs, the tests, the simulation

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typecheck: $(VENV)/ready
	$(BIN)/mypy
	@$(BIN)/python -m tests.documents build/scripts
	$(BIN)/mypy build/scripts
	$(BIN)/basedpyright --pythonpath $(BIN)/python

rooms: $(VENV)/ready
	$(BIN)/lint-imports

docs: $(VENV)/ready ## make a site of the documentation, for build/docs/index.html; warnings are errors
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env -b html -c docs -d build/doctrees . build/docs
	@echo "The documentation is in build/docs/index.html."

simulation: $(VENV)/ready ## run the simulation of SEEDS: clusters and informers on a scheduler that decides every switch
	DYNINFORMER_SEEDS=$(SEEDS) $(BIN)/pytest -q -n $(JOBS) -m "not soak" tests/simulation

sharing: $(VENV)/ready ## run the simulation of SHARING_SEEDS: replicas that share shards, on clocks that go wrong
	DYNINFORMER_SHARING_SEEDS=$(SHARING_SEEDS) $(BIN)/pytest -q -n $(JOBS) -m "not soak" tests/scale/test_simulation.py

mutants: $(VENV)/ready ## plant bugs in a copy, one at a time, and see that a test finds each
	$(BIN)/python -m tests.planted --workers $(JOBS) $(if $(ONLY),--only $(ONLY)) $(if $(WRITE),--write)

test-lowest: $(LOWEST)/ready ## run the fast tests with the lowest dependencies that are allowed
	$(LOWEST)/bin/pytest -n $(WORKERS) $(FAST)

test-prereleases: $(PRERELEASES)/ready ## run the tests of connections with the newest pre-releases of urllib3 and kubernetes
	$(PRERELEASES)/bin/pytest -n $(WORKERS) -m "not soak and not real" $(PYTEST_ARGS) $(PRERELEASE_TESTS)

test-hostile: $(VENV)/ready ## run the fast tests without a network, a home, colours, width, Unicode or rights
	tests/environments/hostile $(BIN)/pytest -n $(WORKERS) $(FAST)

newest: $(NEWEST_PYTHON)/ready ## run the fast tests on Python 3.14 (the one on PATH, or one that Maven brings), with coverage
	@rm -f .coverage .coverage.*
	$(UNDER) env COVERAGE_CORE=sysmon $(NEWEST_PYTHON)/bin/coverage run -m pytest -n $(WORKERS) $(FAST)
	@$(NEWEST_PYTHON)/bin/coverage combine -q
	@$(NEWEST_PYTHON)/bin/coverage report --fail-under=90 > $(NEWEST_PYTHON)/coverage.txt; ok=$$?; grep "^TOTAL" $(NEWEST_PYTHON)/coverage.txt; exit $$ok

held-up: $(NEWEST_PYTHON)/ready ## run the fast tests while threads are held up at lines that SEED chooses (1)
	DYNINFORMER_HELD_UP=$(or $(SEED),1) $(NEWEST_PYTHON)/bin/python -m pytest -p tests.environments.held_up -n $(WORKERS) $(FAST) $(PYTEST_ARGS)

environments: $(NEWEST_PYTHON)/ready $(PRERELEASES)/ready $(LOWEST)/ready ## make the environments of newest, test-prereleases and test-lowest

wheel: $(VENV)/ready ## build the wheel into dist/, check it, and run the README's first script from it
	@rm -rf dist
	@$(BIN)/python -m build --outdir dist . > $(VENV)/build.txt 2>&1 || { cat $(VENV)/build.txt; exit 1; }
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	@$(BIN)/python -m tests.environments.wheel dist/*.whl

fuzz: $(VENV)/ready ## feed what reads bytes of others with bytes that nobody meant, SECONDS each (60)
	@$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --jobs $(JOBS) $(if $(SEED),--seed $(SEED))

faults: SECONDS = 180
faults: $(VENV)/ready ## do real faults to a real API server, SECONDS long (180), and see that nothing is lost
	@$(BIN)/python -m tests.real_faults --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

soak: $(VENV)/ready ## run the tests that take minutes
	$(BIN)/pytest -m soak --timeout 3600 $(PYTEST_ARGS)

bench: $(VENV)/ready ## run the benchmarks; each prints ratios beside a peer
	@for each in benchmarks/bench_*.py; do echo "== $$each"; $(BIN)/python -m benchmarks.$$(basename $$each .py) || exit 1; done

bench-peers: $(VENV)/ready ## sync from a real kube-apiserver, beside curl, client-go, kube-rs, fabric8, the official client and kr8s
	@$(BIN)/python -m benchmarks.peers $(PEERS)

kube: ## build etcd, kube-apiserver and kubectl for the real-server tests (needs Go; minutes)
	@tests/kube/build

clean: ## remove what these commands made
	rm -rf $(VENV) $(LOWEST) $(PRERELEASES) $(NEWEST_PYTHON) $(BROWSER) $(DEMO) $(PEERS_VENV) .python-3.14 build dist *.egg-info .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

# A virtual environment with this folder installed in it, for editing. Python says why it cannot, if it cannot.
define new-venv
@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("dyninformer needs Python 3.11 or later; this is %s. Name another one: make PYTHON=python3.12 ..." % sys.version.split()[0])'
@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "This Python has no venv module. On Debian and Ubuntu: apt-get install python3-venv. Or name another Python: make PYTHON=/path/to/python3 ..." >&2; exit 1; }
@$(PYTHON) -m venv $(@D)
endef

$(VENV)/ready: setup.cfg pyproject.toml
	$(new-venv)
	@echo "Installing into $(@D) ..."
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,pyright,fuzz]'
	@touch $@

$(DEMO)/ready: setup.cfg pyproject.toml
	$(new-venv)
	@echo "Installing the extras cli and testing into $(@D) ..."
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[cli,testing]'
	@touch $@

$(LOWEST)/ready: setup.cfg pyproject.toml tests/lowest_versions.py
	$(new-venv)
	@echo "Installing the lowest versions into $(@D) ..."
	@$(@D)/bin/python tests/lowest_versions.py setup.cfg > $(@D)/lowest.txt
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(@D)/lowest.txt --editable '.[dev]'
	@touch $@

$(PRERELEASES)/ready: setup.cfg pyproject.toml
	$(new-venv)
	@echo "Installing the newest urllib3 and kubernetes into $(@D) ..."
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --pre urllib3 kubernetes
	@$(@D)/bin/python -m pip list --disable-pip-version-check | grep -E '^(urllib3|kubernetes) '
	@touch $@

$(BROWSER)/ready: setup.cfg pyproject.toml
	$(new-venv)
	@echo "Installing JupyterLab, Notebook and marimo into $(@D) ..."
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[browser]'
	@touch $@

$(NEWEST_PYTHON)/ready: setup.cfg pyproject.toml tests/environments/newest
	@python=$$(tests/environments/newest .python-3.14) && "$$python" -m venv --clear $(@D)
	@echo "Installing into $(@D) ..."
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@
