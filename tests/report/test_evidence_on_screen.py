"""What the referee saw is printed: rules, error class, flags, kernels, clocks, roofline, other baselines."""

from __future__ import annotations

import pytest

from kernelproof.db.store import Store
from kernelproof.types import (
    Against,
    Ceilings,
    Determinism,
    ErrorClass,
    Flag,
    Interval,
    Kernels,
    Launch,
    Measurement,
    Origin,
    Pace,
    Replayed,
    Roofline,
    Verification,
    VerifySettings,
)
from tests.db import samples
from tests.report.conftest import Command

KERNELS = Kernels(
    launches=(
        Launch(name="copy_kernel", origin=Origin.COPY, count=2, ms=0.1),
        Launch(name="my\x1b[31m_kernel", origin=Origin.OWN, count=3, ms=0.9),
    ),
    operators=("aten.mm", "aten.add"),
    own_share=0.9,
)
CEILINGS = Ceilings(
    bytes_per_s=4.1e12,
    operations_per_s=7.9e14,
    cache_bytes=50_000_000,
    aa_spread=0.004,
    measured="2026-01-01T00:00:00+00:00",
)


def roofline() -> Roofline:
    """All figures that the noun asks for; those that the screen shows are set."""
    return Roofline.model_validate(
        dict.fromkeys(Roofline.model_fields, 0)
        | {
            "bytes_read": 4_290_000_000,
            "bytes_written": 16_800_000,
            "operations": 1_500_000,
            "memory_ms": 0.41,
            "compute_ms": 0.002,
            "needed_ms": 0.3,
            "fraction": 0.831,
            "ceilings": CEILINGS,
        }
    )


def measured(**fields: object) -> Measurement:
    """A measurement with these fields set."""
    return Measurement.model_validate(samples.measurement(2.0).model_dump() | fields)


def shown(store: Store, command: Command, measurement: Measurement | None = None, **fields: object) -> str:
    """What `show --checks` prints of a correct verification with these fields, blanks made one."""
    plain = samples.verification(samples.problem(), speedup=2.0)
    update = fields if measurement is None else fields | {"measurement": measurement}
    verification = Verification.model_validate(plain.model_dump() | update)
    attempt = samples.begin(store, samples.problem(), samples.settings())
    store.record_verification(attempt, verification)
    return "\n".join(" ".join(line.split()) for line in command("show", "--checks").splitlines())


def test_the_rules_of_a_verdict_are_said(store: Store, command: Command) -> None:
    printed = shown(store, command)
    assert "rules numerics fp32, purity any, rigor standard\n" in printed
    strict = VerifySettings(
        backend="cpp", numerics="tf32", purity="own-compute", rigor="publish", own_kernel=False
    )
    printed = shown(store, command, settings=strict)
    assert "rules numerics tf32, purity own-compute, rigor publish, no own kernel required\n" in printed


def test_error_class_determinism_and_flags(store: Store, command: Command) -> None:
    printed = shown(
        store,
        command,
        error_class=ErrorClass.TF32_CLASS,
        determinism=Determinism.WITHIN_ERROR,
        flags=(Flag.SHAPE_SPECIALISED, Flag.LAYOUT_SPECIALISED),
    )
    assert "1 passed · tf32-class · repeats: within error\n" in printed
    assert "flags shape_specialised: right at the declared sizes only, layout_specialised: " in printed


def test_kernels_come_with_whose_they_are_longest_first(store: Store, command: Command) -> None:
    lines = shown(store, command, kernels=KERNELS).splitlines()
    head = lines.index("kernel whose launches ms share")
    assert lines[head + 2 : head + 4] == ["my_kernel own 3 0.9 90 %", "copy_kernel copy 2 0.1 10 %"]
    assert "own share 90 % of the time" in lines
    assert "operators aten.mm, aten.add" in lines


def test_what_a_kernel_takes_of_an_sm_is_printed(store: Store, command: Command) -> None:
    launch = Launch(name="walk(float*)", origin=Origin.OWN, count=1, ms=0.9, threads=256, registers=64)
    printed = shown(store, command, kernels=Kernels(launches=(launch,)))
    assert "kernel whose launches ms share threads registers\n" in printed
    assert "\nwalk(float*) own 1 0.9 100 % 256 64\n" in printed, (
        "without a GPU in the environment there is no occupancy"
    )


def test_without_times_kernels_have_no_share(store: Store, command: Command) -> None:
    untimed = Kernels(
        launches=(Launch(name="apply", origin=Origin.OWN, count=1),), trouble="the profiler is taken"
    )
    lines = shown(store, command, kernels=untimed).splitlines()
    assert "apply own 1" in lines
    assert "profile the profiler is taken" in lines
    assert not any(line.startswith("own share") for line in lines)


def test_long_names_and_many_kernels_are_shortened_on_screen(store: Store, command: Command) -> None:
    names = [f"begin{n:02}" + "x" * 500 + f"end{n:02}" for n in range(30)]
    launches = tuple(
        Launch(name=name, origin=Origin.LIBRARY, count=1, ms=30.0 - n) for n, name in enumerate(names)
    )
    printed = shown(store, command, kernels=Kernels(launches=launches))
    assert "begin00" in printed and "end19" in printed and "begin20" not in printed
    assert "more kernels 10\n" in printed
    assert names[0] not in printed and names[0] in command("show", "--json")


def test_both_clocks(store: Store, command: Command) -> None:
    clocks = {"inside_ms": 0.5, "host_ms": 0.62, "unseen_ms": 0.1, "overhead_ms": 0.05}
    printed = shown(store, command, measured(**clocks))
    expected = "inside 0.5 ms, host 0.62 ms a call, 0.1 ms of it not shown inside; 0.05 ms overhead"
    assert expected in printed


def test_further_baselines_have_an_interval_and_a_pace_each(store: Store, command: Command) -> None:
    against = tuple(
        Against(
            baseline=name,
            baseline_ms=0.75,
            speedup=speedup,
            speedup_interval=Interval(low=speedup - 0.01, high=speedup + 0.01),
            pace=pace,
            measured="2026-01-01T00:00:00+00:00",
        )
        for name, speedup, pace in (("compile", 1.5, Pace.FASTER), ("max-autotune", 0.9, Pace.SLOWER))
    )
    printed = shown(store, command, measured(against=against))
    assert "against compile 1.50× [1.49, 1.51] faster; 0.75 ms, measured 2026-" in printed
    assert "against max-autotune 0.90× [0.89, 0.91] slower; 0.75 ms" in printed


def test_an_unresolved_pace_says_why(store: Store, command: Command) -> None:
    because = "its interval holds 1"
    printed = shown(store, command, measured(pace=Pace.UNRESOLVED, unresolved_because=because))
    assert "speedup 2.00× [1.98, 2.02] unresolved (may be either: holds 1)" in printed


@pytest.mark.parametrize(
    ("candidate", "baseline", "line"),
    [
        (0.002, 0.003, "as CUDA graph candidate 0.002 ms, eager 0.003 ms, ratio 1.50×"),
        (None, 0.003, "as CUDA graph the candidate cannot be captured, eager 0.003 ms"),
        (0.002, None, "as CUDA graph candidate 0.002 ms, eager cannot be captured"),
    ],
)
def test_launch_bound_calls_are_given_replayed_too(
    store: Store, command: Command, candidate: float | None, baseline: float | None, line: str
) -> None:
    replayed = Replayed(candidate_ms=candidate, baseline_ms=baseline)
    lines = shown(store, command, measured(launch_bound=True, replayed=replayed)).splitlines()
    assert "candidate 0.5 ms, launch-bound" in lines
    assert line in lines


def test_the_roofline_says_how_close_and_by_which_ceilings(store: Store, command: Command) -> None:
    printed = shown(store, command, measured(roofline=roofline()))
    assert "roofline 83.1 % of the roofline; 4.29 GB read, 16.8 MB written: at least 0.41 ms" in printed
    assert "1.5 Mop: at least 0.002 ms; no program can take less than 0.3 ms\n" in printed
    assert "ceilings 4.1 TB/s, 790 Top/s, 50 MB may stay in the cache" in printed
    assert "\nbottleneck memory (the bytes need " in printed


def test_blocks_sessions_and_disturbances(store: Store, command: Command) -> None:
    printed = shown(
        store,
        command,
        measured(
            order=("BC", "CB", "BC"),
            sessions=(0, 0, 1),
            calls=(12, 31, 20),
            disturbed=("throttled", "another process used the GPU", "throttled"),
        ),
    )
    assert "in 3 blocks of 12 to 31 calls (BC CB BC), 4 input sets" in printed
    assert "sessions 2 pairs of fresh processes, with 2, 1 blocks\n" in printed
    assert "disturbed 3 blocks repeated: throttled (2 times); another process used the GPU\n" in printed


def test_of_many_disturbances_the_commonest_are_said(store: Store, command: Command) -> None:
    reasons = ("throttled", *(f"kept waiting {n} ms" for n in range(9)), "throttled")
    printed = shown(store, command, measured(disturbed=reasons))
    assert (
        "disturbed 11 blocks repeated: throttled (2 times); kept waiting 0 ms; kept waiting 1 ms; 7 more"
        in printed
    )


def test_what_was_not_seen_has_no_line(store: Store, command: Command) -> None:
    lines = shown(store, command).splitlines()
    names = {"error class", "determinism", "flags", "kernel", "own share", "operators", "against"}
    names |= {"as CUDA graph", "roofline", "ceilings", "sessions", "disturbed"}
    assert [line for line in lines for name in names if line.startswith(name)] == []
