#!/usr/bin/env bash
# What docs/evidence.md reports, measured on this machine's GPUs, one after the other.
# Results go to generated/evidence/ as JSON; what was begun is continued when it is run again.
#
#   SECONDS_EACH=540 KERNELBENCH=~/KernelBench scripts/evidence.sh
#   scripts/evidence.sh throughput timeline        only these, in this order
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
each=${SECONDS_EACH:-3600}
out=generated/evidence
all=(tests confusion apart builds timeline throughput scaling neighbours memory coverage kernelbench)
mkdir -p "$out"

# The corpus, a share of it on each GPU; what is printed and kept at the end is all of it.
corpus_everywhere() {
    local gpus builders n
    mapfile -t gpus < <("$python" -c 'from kernelproof.verifier.devices.discovery import gpus
for gpu in gpus(): print(gpu.uuid)')
    if [ "${#gpus[@]}" = 0 ]; then
        echo "evidence.sh: no GPU is visible" >&2
        return 1
    fi
    builders=$(($(nproc) / (2 * ${#gpus[@]})))
    for n in "${!gpus[@]}"; do
        CUDA_VISIBLE_DEVICES=${gpus[$n]} "$python" scripts/confusion.py --device cuda --share "$n/${#gpus[@]}" \
            --builders $((builders > 0 ? builders : 1)) --seconds-budget "$each" --json "$out/confusion.$n.json" &
    done
    wait
    "$python" scripts/confusion.py --device cuda --json "$out/confusion.json" --add "$out"/confusion.[0-9]*.json
}

# The command of a step, in `command`. False for a name that is none.
find_command() {
    local json="$out/$1.json"
    local budget=(--backend cuda --seconds-budget "$each" --output "$json")
    case $1 in
    tests) command=(pytest -q -m "gpu and not slow") ;;
    apart)
        command=(benchmarks.apart "${budget[@]}")
        # An hour later, or another day: the same candidates again.
        if [ -f "$json" ]; then command+=(--against "$json" --output "$out/apart_again.json"); fi
        ;;
    builds | timeline) command=("benchmarks.$1" --backend cuda --output "$json") ;;
    throughput) command=(benchmarks.throughput --backend cuda --count 120 --alone 100 --stock 6 --output "$json") ;;
    scaling) command=(benchmarks.scaling --count 40 "${budget[@]}") ;;
    neighbours) command=(benchmarks.neighbours --output "$json") ;;
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
    if [ "$name" = confusion ]; then
        echo "== confusion, on each GPU"
        corpus_everywhere || failed=1
        continue
    fi
    if ! find_command "$name"; then
        echo "evidence.sh: no step $name; there are: ${all[*]}" >&2
        exit 2
    fi
    echo "== $name: ${command[*]}"
    timeout "$((each + 60))" "$python" -m "${command[@]}" || failed=1
done
exit "$failed"
