"""Attacks on the runner take hold of what they name in it: else a renaming would disarm them in silence."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from kernelproof.types import Check, CheckOutcome, Status, Verification, VerifySettings
from kernelproof.verifier.contestant import loop, main
from tests.referee.corpus import CORPUS, members, miss, unarmed, unplanned
from tests.referee.exercise import outputs

ROOT = CORPUS.parents[1]
ATTACKS = {
    f"{path.parent.name}/{path.stem}": path.read_text()
    for kind in ("cheats", "faults", "harmless")
    for path in sorted((CORPUS / kind).glob("*.py"))
}
REACHES = re.compile(
    r"kernelproof|_getframe|f_locals|f_back|gc\.get_|sys\.modules|__main__|inspect|ctypes|environ"
    r"|/proc/self|memfd|sqlite|candidate\.py"
)
"""How an attack reaches for what is not its own."""
NO_REPORT = {
    "cheats/clock_rewritten_in_libc": "it names nothing of ours, only libc",
    "cheats/event_clock_rewritten_in_memory": "it names nothing of ours, only the CUDA runtime",
    "cheats/model_inherited": "it cannot be loaded: what it imports is not in the sandbox",
    "cheats/ptrace_tried": "it names nothing of ours: it tries every process",
    "cheats/torch_shadowed": "it names nothing of ours: it writes modules where it can",
    "cheats/triton_cubin_exchanged_in_the_cache": "it names nothing of ours, and raises where no cubin is",
    "cheats/triton_inductors_file_rewritten": "it names nothing of ours, and raises where no kernel is",
    "cheats/triton_inductors_kernel_renamed": "it names nothing of ours, and raises where no kernel is",
    "faults/device_reset": "it names nothing of ours, only the CUDA runtime",
    "faults/frame_of_deep_json": "it ends in a crash only if it has found the connection",
    "faults/frame_of_four_gigabytes": "it ends in a crash only if it has found the connection",
    "faults/frame_of_garbage": "it ends in a crash only if it has found the connection",
    "faults/frame_of_nested_structure": "without the connection it would be wrong_output",
    "faults/frames_without_end": "it raises when it finds no connection",
    "faults/inputs_unmapped": "it names nothing of ours, and is correct when nothing is unmapped",
    "faults/reply_of_wrong_types": "it is correct when it finds no connection",
    "faults/segmentation_fault": "it names nothing of ours",
    "faults/socket_closed": "without the connection it would be a timeout",
    "harmless/baseline_functions_slowed": "it names nothing of ours, only torch",
    "harmless/computes_ahead_in_a_daemon": "it names nothing of ours",
    "harmless/continued_by_a_timer": "it names nothing of ours, only the kernel's timers",
}
"""Attacks that reach for something and do not report it, and why they need not."""
LOOKED_FOR = {
    "pipeline/verifier/referee/correctness/tolerance.py": "REFERENCE_MULTIPLE",
    "reference_models/level1/2_softmax.py": "get_inputs",
    "pipeline/workspace.py": "attempts.sqlite",
    "pipeline/runs/files.py": "verification.json",
    "pipeline/verifier/referee/stages.py": '"weights"',
}
"""Where it says how we call what attacks look for out of their reach, and a text there that attacks name.

They find none of it, so they cannot notice when it is renamed."""


def test_every_attack_takes_hold_of_what_it_names() -> None:
    """All that need no compiler, and one that patches what is not there, so that an unarmed one is seen."""
    chosen = [member for member in members("cpu") if member.armed_by and not member.builds]
    assert len(chosen) > 30
    (divides,) = (member for member in chosen if member.name == "times_divided")
    patched = divides.source.replace("loop.run_block = run_and_divide", "loop.gone = run_and_divide")
    *printed, last = outputs([*chosen, replace(divides, source=patched)])
    idle = {m.id: parts for m, text in zip(chosen, printed, strict=True) if (parts := unarmed(m, text))}
    assert idle == {}, f"{idle}\n{''.join(printed)[-4000:]}"
    assert unarmed(divides, last) == ["loop.run_block"]


@pytest.mark.parametrize("printed", ["", "armed by: loop.run_block\n"])
def test_a_verdict_on_an_unarmed_attack_is_a_miss(printed: str) -> None:
    (member,) = (member for member in members("cpu") if member.id == "harmless/clock_blurred")
    verdict = Verification.model_construct(status=Status.CHEATING, checks=(), details=f"[stderr]\n{printed}")
    why = miss(member, verdict)
    assert (why is None) if printed else (why is not None and "unarmed" in why)


@pytest.mark.parametrize(
    ("status", "recorded", "difference"),
    [
        (Status.WRONG_OUTPUT, "unheard_of", "the check unheard_of stands in no stage"),
        (Status.WRONG_OUTPUT, "values: drawn", None),
        (Status.CORRECT, "values: drawn", "correct without the check input"),
    ],
)
def test_checks_that_are_not_the_plan_s_are_a_miss(
    status: Status, recorded: str, difference: str | None
) -> None:
    check = Check(name=recorded, outcome=CheckOutcome.PASS, asked="?", seen="")
    settings = VerifySettings(measure=False, backend="cpp")
    found = unplanned(Verification.model_construct(status=status, checks=(check,), settings=settings))
    assert found is None if difference is None else found is not None and found.startswith(difference)


def test_what_reaches_for_our_names_reports_it() -> None:
    reaching = {name for name, source in ATTACKS.items() if REACHES.search(source)}
    reporting = {name for name, source in ATTACKS.items() if "\n# armed by: " in source}
    assert reaching - reporting == NO_REPORT.keys()


def test_names_in_headers_are_those_that_are_reported() -> None:
    for name, source in ATTACKS.items():
        for parts in re.findall(r"^# armed by: (.+)$", source, re.MULTILINE):
            assert [part for part in parts.split(", ") if source.count(part) < 2] == [], name


@pytest.mark.parametrize("name", [name for name, source in ATTACKS.items() if "kernelproof" in source])
def test_what_attacks_name_in_our_modules_is_there(name: str) -> None:
    """On a CPU too for those that run on a GPU only."""
    tree = ast.parse(ATTACKS[name])
    modules = dict(_imported(tree))
    named = {
        (node.value.id, node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules
    }
    assert [f"{of}.{what}" for of, what in sorted(named) if not hasattr(modules[of], what)] == []
    variables = {
        node.id if isinstance(node, ast.Name) else node.arg
        for module in (loop, main)
        for node in ast.walk(ast.parse(Path(module.__file__ or "").read_text()))
        if isinstance(node, ast.Name | ast.arg)
    }
    assert set(re.findall(r'f_locals\.get\("(\w+)"', ATTACKS[name])) <= variables


def _imported(tree: ast.Module) -> Iterator[tuple[str, ModuleType]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kernelproof"):
            package = import_module(str(node.module))
            for alias in node.names:
                if alias.name != "*":
                    yield (
                        alias.name,
                        getattr(package, alias.name, None) or import_module(f"{node.module}.{alias.name}"),
                    )


@pytest.mark.parametrize(("file", "text"), LOOKED_FOR.items())
def test_what_attacks_look_for_outside_is_called_so(file: str, text: str) -> None:
    assert text in (ROOT / file).read_text()
    assert any(text in source for source in ATTACKS.values())
