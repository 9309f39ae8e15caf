# Everything runs from a virtual environment, which these targets create and keep current.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SHAPE ?= active-active
DEMO_SECONDS ?= 15
# Tests run in two processes, each with its own brokers. Those that gate a commit on brokers mostly wait, so there are three:
# two thirds of the time that two take.
TEST_PROCESSES ?= 2
BROKER_PROCESSES ?= 3
# Branch coverage that unit and property tests reach by themselves; raise it when they reach more.
COVERAGE_FLOOR ?= 57.5
PYTEST := $(BIN)/python -m pytest
IN_PROCESSES := -n $(TEST_PROCESSES) --dist loadfile
# What may happen to any link, asked of each engine by name: left to itself a link takes the one that suits it.
WITH_EACH_ENGINE := failover switchover switchover_past_open_transactions killed_workers broken_clusters take_over turning_some_topics reseeding_a_cluster split_brain moving_groups source_transactions shapes_replicate jepsens_workloads
FAULTS_WITH = $(PYTEST) -q $(IN_PROCESSES) --engine $(1) --durations=30 $(addprefix tests/acceptance/test_,$(addsuffix .py,$(WITH_EACH_ENGINE)))
SLOW := $(PYTEST) -q $(IN_PROCESSES) -m slow --durations=30

.DEFAULT_GOAL := help
.PHONY: help setup hooks demo test lint types contracts unit chart chart-files integration test-slow test-slow-unit test-slow-chart test-slow-integration test-slow-acceptance test-slow-records test-slow-batches test-slow-spark test-slow-images images test-images requirements version bench bench-quick soak docs fmt clean

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-20s %s\n", $$1, $$2}'

setup: $(STAMP) ## Make the environment

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "Python 3.11 or newer is needed; '$(PYTHON)' is not. Install it (Debian: apt install python3 python3-venv; macOS: brew install python) or name it: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "The venv module is missing (Debian: apt install python3-venv)."; exit 2; }
	@echo "Installing the environment into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

hooks: $(STAMP) ## Run the quick checks before every commit of this clone
	$(BIN)/pre-commit install

demo: $(STAMP) ## Two or three real clusters, live traffic, a killed worker, a verdict (SHAPE=…, DEMO_SECONDS=…)
	@$(BIN)/replicator demo --shape $(SHAPE) --seconds $(DEMO_SECONDS) --no-wait

test: lint types contracts unit chart integration ## All checks and tests that gate a commit: under 25 minutes on two cores

lint: $(STAMP) ## Rules of style, and the format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## Types, strictly
	$(BIN)/mypy

contracts: $(STAMP) ## Which package may import which
	$(BIN)/lint-imports

# Only Python's output is captured: what a library in C writes before it aborts is to be seen.
unit: $(STAMP) ## Unit and property tests with their branch coverage: no broker
	$(PYTEST) -q -n $(TEST_PROCESSES) --capture=sys --cov --cov-report= --cov-fail-under=$(COVERAGE_FLOOR) -m 'not integration and not slow' tests/unit tests/property tests/contract

chart: $(STAMP) ## The chart, alerts, dashboards, runbooks and deploy/: no cluster (needs promtool and Node.js)
	$(PYTEST) -q -n $(TEST_PROCESSES) -m 'not slow' tests/chart

chart-files: $(STAMP) ## Write what follows from values, schema and metrics: schema, README, alerts, dashboards
	$(BIN)/python deploy/generate

integration: $(STAMP) ## Tests on real brokers
	$(PYTEST) -q -n $(BROKER_PROCESSES) --dist loadfile -m 'not slow' tests/contract tests/integration tests/acceptance tests/spark

test-slow: test-slow-unit test-slow-chart test-slow-integration test-slow-acceptance test-slow-records test-slow-batches test-slow-spark test-slow-images ## Long fault runs, part by part

test-slow-unit: $(STAMP) ## … thousands of schedules on virtual time
	$(PYTEST) -q -n $(TEST_PROCESSES) -m slow --durations=30 tests/unit tests/property

test-slow-chart: $(STAMP) ## … releases on a real API server; left out where its programs are missing
	$(PYTEST) -q -m slow --durations=30 tests/chart

test-slow-integration: $(STAMP) ## … lanes, role changes and MirrorMaker 2's formats on real brokers
	$(SLOW) tests/contract tests/integration

test-slow-acceptance: $(STAMP) ## … workers, operators and brokers that are killed, older brokers, drills
	$(SLOW) tests/acceptance

test-slow-records: $(STAMP) ## … the same faults and role changes, every flow record by record
	$(call FAULTS_WITH,records)

test-slow-batches: $(STAMP) ## … and every flow in whole batches
	$(call FAULTS_WITH,batches)

test-slow-spark: $(STAMP) ## … Spark drivers that are killed, history at size
	$(SLOW) tests/spark

test-slow-images: $(STAMP) ## … containers, one after the other; left out where no engine answers
	$(PYTEST) -q -m slow --durations=30 tests/images

images: ## Both images, with docker, podman or buildah (ENGINE=…, IMAGE_PREFIX=…, PYTHON_IMAGE=…; deploy/build-images.sh)
	@deploy/build-images.sh

test-images: $(STAMP) ## The images in real containers, as the chart runs them (needs docker or podman)
	@deploy/find-engine.sh >/dev/null
	$(PYTEST) -q tests/images

requirements: $(STAMP) ## Pin what images are built from, with hashes (ARGS=--upgrade takes newer versions)
	PATH="$(CURDIR)/$(BIN):$$PATH" deploy/requirements/compile.sh $(ARGS)

version: ## Print the version
	@sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml

bench: $(STAMP) ## Both engines against MirrorMaker 2, within 90 minutes; writes docs/benchmarks.md and its charts
	$(BIN)/python tests/bench/run.py --write docs/benchmarks.md

bench-quick: $(STAMP) ## The same within 15 minutes: fewer rounds and records; writes them too
	$(BIN)/python tests/bench/run.py --quick --write docs/benchmarks.md

soak: $(STAMP) ## Half an hour at full speed: memory stays flat, nothing is lost (ARGS=--minutes 5 for less)
	$(BIN)/python tests/bench/soak.py $(ARGS)

fmt: $(STAMP) ## Format, and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove the environment and caches of this folder
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage build dist *.egg-info
