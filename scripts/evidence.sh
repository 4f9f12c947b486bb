#!/usr/bin/env bash
# What docs/evidence.md and docs/performance.md report, measured on this machine's GPUs, one after the other.
# Results go to generated/evidence/ as JSON; what was begun is continued when it is run again.
#
#   SECONDS_EACH=540 KERNELBENCH=~/KernelBench scripts/evidence.sh
#   scripts/evidence.sh throughput timeline        only these, in this order
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
each=${SECONDS_EACH:-3600}
out=generated/evidence
all=(tests confusion apart builds timeline throughput scaling alone_or_together memory coverage kernelbench)
mkdir -p "$out"

# The command of a step, in `command`. False for a name that is none.
find_command() {
    local json="$out/$1.json"
    local budget=(--backend cuda --seconds-budget "$each" --output "$json")
    case $1 in
    tests) command=(pytest -q -m "gpu and not slow") ;;
    confusion) command=(scripts.confusion --device cuda --seconds-budget "$each" --json "$json") ;;
    apart)
        command=(benchmarks.apart "${budget[@]}")
        # An hour later, or another day: the same candidates again.
        if [ -f "$json" ]; then command+=(--against "$json" --output "$out/apart_again.json"); fi
        ;;
    builds | timeline) command=("benchmarks.$1" --backend cuda --output "$json") ;;
    throughput) command=(benchmarks.throughput --backend cuda --count 120 --stock 6 --output "$json") ;;
    scaling) command=(benchmarks.scaling --count 40 "${budget[@]}") ;;
    alone_or_together) command=(benchmarks.alone_or_together --count 100 "${budget[@]}") ;;
    memory) command=(benchmarks.memory "${budget[@]}") ;;
    coverage)
        command=(benchmarks.several --json "$json" coverage --
            --problems 20 --repeats 10 --rigor standard --seconds-budget "$each")
        ;;
    kernelbench)
        command=(benchmarks.several --json "$json" kernelbench_sweep --processes 2 --
            --suite "${KERNELBENCH:?a KernelBench checkout}" --seconds-budget "$each")
        ;;
    *) return 1 ;;
    esac
}

if [ $# = 0 ]; then
    set -- "${all[@]}"
    if [ -z "${KERNELBENCH:-}" ]; then set -- "${@/kernelbench/}"; fi
fi
failed=0
for name in "$@"; do
    [ -n "$name" ] || continue
    if ! find_command "$name"; then
        echo "evidence.sh: no step $name; there are: ${all[*]}" >&2
        exit 2
    fi
    echo "== $name: ${command[*]}"
    timeout "$((each + 60))" "$python" -m "${command[@]}" || failed=1
done
exit "$failed"
