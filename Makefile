# Everything runs from the checkout; what is built once per machine goes to ROLLOUT_CACHE.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup setup-tests setup-kubernetes project runtime demo manifests lint test test-slurm test-fast test-kubernetes bench clean clean-cache

PYTHON ?= python3
export ROLLOUT_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/rollout-operator
export PATH := $(ROLLOUT_CACHE)/bin:$(PATH)
# Every process of a test or demo starts faster from compiled files.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
SETUP := $(PYTHON) -m hack.setup
PYTEST := $(BIN)/python -m pytest
WORKERS ?= 2
# Attacks from inside sandboxes, fork bombs among them: nothing else is tested meanwhile.
ALONE := tests/integration/sandbox
OWN := crds api sandbox_runtime stages operator slurm_bridge trainers
TOOLS := hack/setup hack/kube hack/slurm $(wildcard hack/*.py)

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Set up everything: environment, Apptainer, vLLM (CPU), models, sandbox images and runtime
	$(SETUP)

project: ## Set up only the Python environment .venv
	$(SETUP) project

runtime: ## Build the runtime that is mounted into sandboxes
	$(SETUP) runtime

setup-kubernetes: ## Build Kubernetes and install its node's packages, for tests on a real cluster
	$(SETUP) project kubernetes kubernetes-node helm

demo: setup ## Set up, then run the math and coding examples on this machine
	$(BIN)/rolloutctl run -f examples/math/rolloutjob.yaml
	$(BIN)/rolloutctl run -f examples/coding/rolloutjob.yaml
	$(BIN)/rolloutctl run -f examples/coding-demonstration/rolloutjob.yaml

manifests: ## Generate the CRD YAML from the models
	$(BIN)/python -m rollout_crds.generate

lint: ## Check style, types, layers and dependencies
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --explicit-package-bases $(TOOLS) tests/support
	$(BIN)/pyright
	$(BIN)/pyright $(TOOLS) tests/support
	$(BIN)/lint-imports
	$(BIN)/deptry $(OWN)

test: ## Set up everything, check and run all tests; fails when one is skipped for want of set-up
	$(SETUP) project
	$(MAKE) --jobs 2 --output-sync=line setup setup-tests lint
	$(PYTEST) $(ALONE) -p tests.support.strict
	$(PYTEST) $(ALONE:%=--ignore %) -p tests.support.strict -m 'not kubernetes and not slurm' --numprocesses $(WORKERS) --dist loadgroup

test-kubernetes: setup-kubernetes ## Run the tests that need a real Kubernetes (its node as root)
	$(SETUP) image-busybox
	$(PYTEST) -p tests.support.strict -m kubernetes

setup-tests: project ## Set up what only tests need: helm
	$(SETUP) helm

test-slurm: project ## Run the tests that need a real Slurm, as a private cluster of one user
	$(SETUP) slurm runtime image-busybox models
	$(PYTEST) -p tests.support.strict -m slurm

test-fast: project ## Run the unit and contract tests only
	$(PYTEST) --numprocesses $(WORKERS) tests/unit tests/contract

bench: setup ## Measure the overhead of our own machinery per rollout
	$(BIN)/python -m bench

clean: ## Remove what tools left in the checkout
	rm -rf .venv dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage*

clean-cache: ## Remove the machine's cache too (downloaded and built parts)
	rm -rf "$(ROLLOUT_CACHE)"
