# make demo           install, then the main job on this machine, from recorded model responses
# make test           install what it needs, then style, types, imports, tests (no GPU; minutes)
# make test-ci        more tests that build and judge candidates, and dear cases of others; .ci/run runs them after make test
# make test-slow      the tests that are left out of both (on a GPU also its own); hours, by hand
# make test-thorough  simulations and long repetitions, by hand (hours)
# make test-gpu       the tests that need a CUDA device
# make coverage       the lines that make test and make test-ci run, subprocesses included (TESTS=tests/db: only those)
# make faults         how many of 200 small faults in pipeline/ and db/ they notice; after make coverage (hours on 2 cores)
# make lock           tests/lock.txt, from what is installed: in a fresh environment
# make bench          the benchmarks: they print figures, they assert none
# make docs           the documentation as a site, in build/site
# make evidence       what docs/evidence.md reports, measured on this machine's GPUs (hours; see the script)
#
# TEST_WORKERS=4 make test    runs the tests in so many processes instead of three, which two cores carry: tests often wait
PYTHON ?= python3
VENV := .venv/bin
# .ci/run names another: there what fails runs again, alone (scripts/tests_again.py).
PYTEST ?= $(VENV)/python -m pytest
TEST_WORKERS ?= 3
# Each process takes tests from the other when it has none left. A test that asserts a time runs alone.
# The dearest tests are named at the end.
BESIDE := -n $(TEST_WORKERS) --dist worksteal --durations=60 --durations-min=3
# The files with such tests: to collect all others a second time takes as long as the tests.
CLOCKED = $(shell grep -rl 'mark\.clock' tests --include='*.py')
USUAL := not gpu and not slow and not thorough
export PYTHON
# Hundreds of processes start in a run: none compiles the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-ci test-gpu test-slow test-thorough coverage faults lock bench docs evidence lint clean

demo: .venv/demo.installed
	$(VENV)/python scripts/demo.py

# 25 examples of each property, where the test does not say how many; make test-ci tries 100.
test: export TEST_EXAMPLES := quick
test: lint
	$(PYTEST) $(BESIDE) -m "not ci and not clock and $(USUAL)"
	$(PYTEST) -m "clock and not ci and $(USUAL)" $(CLOCKED)

test-ci: .venv/test.installed
	$(PYTEST) $(BESIDE) -m "(ci or hypothesis) and not clock and $(USUAL)"
	$(PYTEST) -m "clock and ci and $(USUAL)" $(CLOCKED)

test-gpu: .venv/test.installed
	$(VENV)/python -m pytest -m "gpu and not slow and not thorough"

test-slow: .venv/test.installed
	$(VENV)/python -m pytest $(BESIDE) -m "slow and not gpu and not clock"
	$(VENV)/python -m pytest -m "slow and clock and not gpu" $(CLOCKED)
	if $(VENV)/python -c 'import torch; raise SystemExit(not torch.cuda.is_available())'; then \
		$(VENV)/python -m pytest -m "slow and gpu"; fi

test-thorough: .venv/test.installed
	$(VENV)/python -m pytest -m "thorough and not gpu"

lint: .venv/test.installed
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	MYPY_NUM_WORKERS=$(TEST_WORKERS) $(VENV)/mypy
	$(VENV)/lint-imports

coverage: .venv/test.installed
	$(VENV)/python -m scripts.line_coverage --suite both --jobs $(TEST_WORKERS) -- $(TESTS)

faults: .venv/test.installed
	$(VENV)/python -m scripts.seeded_faults --suite both --jobs $(TEST_WORKERS) --json generated/faults.json

lock: .venv/test.installed
	sed -n 1p tests/lock.txt > .venv/lock.new
	$(VENV)/python -m pip freeze --exclude-editable | sed 's/+cpu$$//' >> .venv/lock.new
	mv .venv/lock.new tests/lock.txt

bench: .venv/demo.installed
	$(VENV)/python -m benchmarks.startup
	$(VENV)/python -m benchmarks.leaderboard
	$(VENV)/python -m benchmarks.builds
	$(VENV)/python -m benchmarks.timeline

docs: .venv/demo.installed
	scripts/install.sh docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/python -m mkdocs build --strict --quiet

evidence: .venv/test.installed
	scripts/evidence.sh

.venv/demo.installed: pyproject.toml constraints.txt scripts/install.sh
	scripts/system_packages.sh
	scripts/install.sh serve
	touch $@

# All at once, since pip looks at every package each time.
.venv/test.installed: pyproject.toml constraints.txt scripts/install.sh
	scripts/system_packages.sh test
	scripts/install.sh test lint
	touch .venv/demo.installed $@

clean:
	rm -rf .venv build *.egg-info src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
