#!/usr/bin/env bash
# What docs/evidence.md and docs/performance.md report, measured on this machine's GPUs, one after the other.
# Results go to generated/evidence/ as JSON; what was begun is continued when it is run again.
#
#   SECONDS_EACH=540 KERNELBENCH=~/KernelBench scripts/evidence.sh
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
each=${SECONDS_EACH:-3600}
out=generated/evidence
mkdir -p "$out"
failed=0

step() {
    echo "== $*"
    timeout "$((each + 60))" "$@" || failed=1
}

step "$python" -m pytest -q -m "gpu and not slow"
step "$python" scripts/confusion.py --device cuda --json "$out/confusion.json"
apart=(--output "$out/apart.json")
if [ -f "$out/apart.json" ]; then  # an hour later, or another day
    apart=(--against "$out/apart.json" --output "$out/apart_again.json")
fi
step "$python" -m benchmarks.apart --backend cuda --seconds-budget "$each" "${apart[@]}"
step "$python" -m benchmarks.builds --backend cuda --output "$out/builds.json"
step "$python" -m benchmarks.timeline --backend cuda --output "$out/timeline.json"
step "$python" -m benchmarks.throughput --backend cuda --count 60 --stock 6 --output "$out/throughput.json"
step "$python" -m benchmarks.scaling --backend cuda --count 40 --seconds-budget "$each" --output "$out/scaling.json"
step "$python" -m benchmarks.alone_or_together --backend cuda --count 100 --seconds-budget "$each" \
    --output "$out/alone_or_together.json"
step "$python" -m benchmarks.memory --backend cuda --seconds-budget "$each" --output "$out/memory.json"
step "$python" -m benchmarks.several --json "$out/coverage.json" coverage -- \
    --problems 20 --repeats 10 --rigor standard --seconds-budget "$each"
if [ -n "${KERNELBENCH:-}" ]; then
    step "$python" -m benchmarks.several --json "$out/kernelbench.json" kernelbench_sweep --processes 2 -- \
        --suite "$KERNELBENCH" --seconds-budget "$each"
fi
exit "$failed"
