# make demo       install, then the main job on this machine, from recorded model responses
# make test       install what it needs, then the whole suite: style, types, walls, tests (no GPU needed)
# make test-gpu   the tests that need a CUDA device
# make test-slow  the tests that take longer than a minute each (on a GPU also its own)
# make bench      the benchmarks: they print figures, they assert none
# make evidence   what docs/evidence.md reports, measured on this machine's GPUs (hours; see the script)
PYTHON ?= python3
VENV := .venv/bin
export PYTHON

.PHONY: demo test test-gpu test-slow bench evidence lint clean

demo: .venv/demo.installed
	$(VENV)/python scripts/demo.py

test: lint
	$(VENV)/python -m pytest

test-gpu: .venv/test.installed
	$(VENV)/python -m pytest -m "gpu and not slow"

test-slow: .venv/test.installed
	$(VENV)/python -m pytest -m "slow and not gpu"
	if $(VENV)/python -c 'import torch; raise SystemExit(not torch.cuda.is_available())'; then \
		$(VENV)/python -m pytest -m "slow and gpu"; fi

lint: .venv/test.installed .venv/lint.installed
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/mypy
	$(VENV)/lint-imports

bench: .venv/demo.installed
	$(VENV)/python -m benchmarks.startup
	$(VENV)/python -m benchmarks.leaderboard
	$(VENV)/python -m benchmarks.builds
	$(VENV)/python -m benchmarks.timeline

evidence: .venv/test.installed
	scripts/evidence.sh

.venv/demo.installed: pyproject.toml constraints.txt scripts/install.sh
	scripts/system_packages.sh
	scripts/install.sh
	touch $@

.venv/test.installed: .venv/demo.installed
	scripts/install.sh test
	touch $@

.venv/lint.installed: .venv/demo.installed
	scripts/install.sh lint
	touch $@

clean:
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
