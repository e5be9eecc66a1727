# Two commands matter: `make demo` and `make test`. Both set up .venv first.
PYTHON ?= python3.11
BIN := .venv/bin
STAMP := .venv/.installed
ALL := .venv/.installed-compilers
DEMO_GRAPHS := vision/resnet18.json vision/deit_tiny.json transformer/distilbert.json graph/gcn.json graph/graphsage.json \
  recommender/wide_and_deep.json recommender/dcn_v2.json science/deeponet.json matmul/square_512.json

.DEFAULT_GOAL := help
.PHONY: help setup compilers demo test browser-test lint check slow fuzz dataset benchmarks gpu-check clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-13s %s\n", $$1, $$2}'

setup: $(STAMP)  ## create .venv with everything that the demo needs
compilers: $(ALL)  ## add every compiler that has a package for this machine; the tests need them

$(STAMP): pyproject.toml constraints.txt requirements-capture.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv || python3 -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[torch,jax,onnxruntime,capture,dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps -r requirements-capture.txt
	touch $(STAMP)

$(ALL): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[compilers]'
	touch $(ALL)

demo: $(STAMP)  ## evaluate real graphs on four compilers, leave demo-results/
	$(BIN)/graphnet evaluate --compiler torch,inductor,jax,onnxruntime --budget 1 --output demo-results \
	  $(foreach g,$(DEMO_GRAPHS),--graph benchmark/$(g))
	$(BIN)/graphnet score demo-results

test: $(ALL) lint  ## linters, types, import rules, then the test suite
	$(BIN)/python -m pytest

lint: $(ALL)  ## ruff, mypy --strict, import-linter
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

browser-test: $(ALL)  ## the HTML report in Chromium (apt-get install chromium chromium-driver), screenshots in build/
	$(BIN)/python -m pytest -m browser

slow: $(ALL)  ## the minutes-long tests
	$(BIN)/python -m pytest -m slow --timeout 3600

fuzz: $(STAMP)  ## ten minutes of fuzzing of the graph reader and of the ONNX import, each
	GRAPHNET_FUZZ_SECONDS=600 $(BIN)/python -m pytest -m slow -k fuzz --timeout 3600

dataset: $(STAMP)  ## rebuild the core set from its recipes into build/benchmark
	$(BIN)/graphnet dataset build --output build/benchmark

gpu-check: ## on a machine with a GPU: torch, inductor and jax on CUDA, ncu
	bash benchmarks/gpu_check.sh

clean:  ## remove what the targets above made
	rm -rf .venv build demo-results .pytest_cache .mypy_cache .ruff_cache .hypothesis
