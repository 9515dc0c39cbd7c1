# Everything a newcomer needs, with `make` and nothing else: `setup` finds Python and makes .venv, the other
# targets use it. `make help` lists them.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup lock demo test lint typecheck unit kafka-up kafka-down kafka-status kafka-jars store-servers kills kill-tests damage sim matrix mutants bench bench-channels bench-pressure bench-ray bench-state kills-state soak clean

VENV := .venv
PYTHON := $(VENV)/bin/python
STAMP := $(VENV)/.installed

# make kills N=20 SEED=7 WORKERS=2
# make kills JOBS=all N=20, or JOBS=union,timers: N kills of each of the simulation's jobs
N ?= 10
SEED ?=
WORKERS ?=
JOBS ?=
# make kills STORE=s3 N=20
STORE ?=
# make damage N=500 SEED=7
# make sim SEEDS=10000 FIRST=1 REPORT=tests/simulation/report.md; make mutants SEEDS=2000
SEEDS ?= 1000
FIRST ?= 1
REPORT ?=
# make soak MINUTES=30
MINUTES ?= 10
# make test PYTEST_ARGS='-k broker -x'
PYTEST_ARGS ?=
export PYTEST_ARGS
# make kafka-up KAFKA_VERSION=3.9.1
KAFKA_VERSION ?=

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  N=, SEED=, WORKERS=, JOBS=, STORE=s3 for kills; N=, SEED= for damage; SEEDS=, FIRST=, REPORT= for sim; SEEDS= for mutants; MINUTES= for soak; PYTEST_ARGS= for test; KAFKA_VERSION= for kafka-up"

setup: $(STAMP) ## makes .venv from the hashed lock; instant when nothing has changed
	@:

# The project is installed editable and without its dependencies: those come from the lock, checked by hash.
# No build isolation, or the build would fetch a backend that no hash stands for.
$(STAMP): requirements/dev.txt pyproject.toml .ci/python.bash
	@bash .ci/python.bash $(VENV)
	@echo "Installing the locked dependencies into $(VENV) ..."
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/dev.txt
	@PYTHONWARNINGS=ignore $(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

lock: setup ## makes the hashed locks anew from pyproject.toml
	@export CUSTOM_COMPILE_COMMAND="make lock"; \
	compile() { $(PYTHON) -m piptools compile --quiet --no-config --generate-hashes --allow-unsafe --strip-extras \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links "$$@" pyproject.toml; }; \
	compile --output-file requirements/runtime.txt && \
	compile --build-deps-for wheel --only-build-deps --output-file requirements/build.txt && \
	compile --extra dev --constraint requirements/runtime.txt --output-file requirements/dev.txt

demo: setup ## a small job, killed on purpose while it runs, and the proof that nothing is lost or doubled
	@$(PYTHON) -m examples.demo

test: setup ## style, rooms, types and all tests; the summary comes last
	@bash .ci/checks.bash all

lint: setup ## the checks of `make test` that need no running code
	@bash .ci/checks.bash static

kafka-up: setup ## finds or starts a Kafka, prints its bootstrap servers
	@$(PYTHON) -m connectors.kafka.dev_broker up $(KAFKA_VERSION)

kafka-down: setup ## stops it again and drops its data
	@$(PYTHON) -m connectors.kafka.dev_broker down

kafka-status: setup ## says where Kafka is and whether it answers
	@$(PYTHON) -m connectors.kafka.dev_broker status

store-servers: setup ## brings HDFS and an emulator of Azure's blobs into build/, for the tests of those stores
	@$(PYTHON) -m tests.store_servers

kafka-jars: setup ## copies Kafka's jars to build/, for a broker or an image made from them
	@$(PYTHON) -m connectors.kafka.dev_broker jars $(KAFKA_VERSION)

kills: setup ## N kills (SIGKILL) of a running job at random moments, each audited
	@$(PYTHON) -m tests.integration.$(if $(JOBS),case_kills --jobs $(JOBS),kills) --count $(N) \
	  $(if $(SEED),--seed $(SEED)) $(if $(WORKERS),--workers $(WORKERS)) $(if $(STORE),--store $(STORE))

kill-tests: setup ## all tests that kill, each with everything it knows: CI runs at most 60 kills of them
	@KILLS=all $(PYTHON) -m pytest -q -m kill tests

damage: setup ## N files of checkpoints and savepoints damaged, one at a time: each is refused by name, or costs nothing
	@$(PYTHON) -m tests.damage.sweep --count $(N) $(if $(SEED),--seed $(SEED))

sim: setup ## SEEDS simulated runs, each another job with other faults; FIRST= is the first seed
	@$(PYTHON) -m tests.simulation.seeds --seeds $(SEEDS) --first $(FIRST) --processes 2 $(if $(REPORT),--report $(REPORT))

matrix: setup ## savepoints from every shape of a job into every other, simulated, and pairs of choices on a real broker
	@$(PYTHON) -m tests.simulation.matrix
	@CELLS=all $(PYTHON) -m pytest -q tests/integration/test_restore_matrix.py

mutants: setup ## faults put into the code one at a time: SEEDS until the simulation catches each
	@$(PYTHON) -m tests.simulation.mutants --seeds $(SEEDS) --processes 2 --record
	@MUTANTS=all $(PYTHON) -m pytest -q tests/simulation/mutants/test_mutants.py -k caught_by_its_tests

kills-state: setup ## N kills (SIGKILL) of a process that takes checkpoints of RocksDB, each looked at: no broker
	@$(PYTHON) -m tests.unit.state.killed_checkpoints --kills $(N) $(if $(SEED),--seed $(SEED))

bench-state: setup ## large state over RocksDB, its checkpoints, and canonical savepoints, by themselves: no broker
	@$(PYTHON) -m tests.performance.state_bench
	@$(PYTHON) -m tests.performance.savepoint_bench

bench-channels: setup ## a channel between two worker processes, beside a bare socket: no broker
	@$(PYTHON) -m tests.performance.channel_bench

bench-ray: setup ## batches through a channel and through Ray's object store: no broker
	@$(PYTHON) -m tests.performance.ray_store_bench

bench-pressure: setup ## checkpoints of a job whose channels are full, aligned and not, against a real broker
	@$(PYTHON) -m tests.performance.pressure_bench

bench: setup ## records per second, processor seconds and memory, against a real broker
	@$(PYTHON) -m tests.performance.bench

soak: setup ## all long sweeps, hours: kills for MINUTES, SEEDS of the simulation, all orders of publishing, mutants
	@failed=0; \
	$(PYTHON) -m tests.integration.kills --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(WORKERS),--workers $(WORKERS)) || failed=1; \
	KILLS=all $(PYTHON) -m pytest -q -m kill tests || failed=1; \
	$(PYTHON) -m tests.simulation.seeds --seeds $(SEEDS) --first $(FIRST) --processes 2 $(if $(REPORT),--report $(REPORT)) || failed=1; \
	$(PYTHON) -m tests.simulation.matrix || failed=1; \
	$(PYTHON) -m tests.protocol.publishing_model --full || failed=1; \
	$(PYTHON) -m tests.simulation.mutants --seeds $(SEEDS) --processes 2 || failed=1; \
	exit $$failed

clean: ## removes .venv and build (stop the broker first: make kafka-down)
	rm -rf $(VENV) build
