"""What a question of a search shows: times, kernels, the roofline, other programs, and what was tried."""

from __future__ import annotations

from typing import Any

import pytest

from kernelproof.errors import UsageError
from kernelproof.prompting import (
    Failure,
    KnownPlan,
    Shown,
    Tried,
    first_prompt,
    plan_prompt,
    plans_prompt,
    repair_prompt,
)
from kernelproof.types import Kernels, Launch, Origin, Pace, Plan, Prompt, Response, Status
from tests.prompting.material import measurement, problem, roofline, verification


def asked(failure: Failure, backend: str = "cuda", text: str = "my answer", **more: Any) -> Prompt:
    first = first_prompt(problem(), backend=backend, template="basic-v4")
    return repair_prompt(
        problem(),
        backend=backend,
        template="basic-v4",
        previous=first,
        response=Response(text=text),
        failure=failure,
        **more,
    )


def correct(**changes: Any) -> Failure:
    measured = measurement(1.5, Pace.FASTER).model_copy(update=changes.pop("times", {}))
    return Failure.from_verification(verification(Status.CORRECT, measurement=measured, **changes))


def test_the_time_stands_beside_the_baseline_and_the_roofline() -> None:
    user = asked(correct(times={"roofline": roofline(memory_ms=0.5, compute_ms=0.1)})).user
    assert "One call takes 1.333 ms; the reference takes 2 ms. The speedup is 1.5x" in user
    assert "is memory bound: moving 64 MiB in and 1.5 KiB out takes at least 0.5 ms." in user
    assert "reaches 40 % of that roofline" in user


def test_a_problem_that_computes_much_is_compute_bound() -> None:
    user = asked(correct(times={"roofline": roofline(memory_ms=0.1, compute_ms=0.7)})).user
    assert "is compute bound: 2e+06 operations takes at least 0.7 ms" in user


@pytest.mark.parametrize(("backend", "says"), [("cuda", "launches 12 kernels"), ("cpp", "makes 12 calls of")])
def test_the_kernels_that_took_longest_are_named(backend: str, says: str) -> None:
    launches = [Launch(name=f"small{n}", origin=Origin.LIBRARY, count=1, ms=0.01) for n in range(9)]
    own = Launch(name="mine<`x`>" + "y" * 200, origin=Origin.OWN, count=3, ms=2.0)
    user = asked(correct(kernels=Kernels(launches=(*launches, own), own_share=0.9)), backend).user
    assert f"One call {says}" in user and "90 % of the time is in kernels of your own" in user
    lines = [line for line in user.splitlines() if " ms together" in line]
    assert lines[0].startswith("- `mine<'x'>yyy") and len(lines) == 8 and max(map(len, lines)) < 160


def test_secrets_of_the_verification_stay_there() -> None:
    failure = correct(seeds={"inputs": 987654321}, inputs=({"shape": [77, 88]},), details="printed")
    user = asked(failure).user
    assert "987654321" not in user and "77" not in user


def test_programs_are_shown_with_their_speedups_within_a_budget() -> None:
    filler = "#" * 15_000
    shown = [
        Shown(source=f"speed = {s}\n{filler}", measurement=measurement(s, Pace.SAME)) for s in (0.5, 0.9, 1.2)
    ]
    user = asked(correct(), shown=shown).user
    assert "Speedup 0.5x" not in user, "the slowest is left out where not all fit"
    assert user.index("Speedup 0.9x") < user.index("speed = 0.9") < user.index("Speedup 1.2x")
    assert len(user) < 45_000


def test_what_was_tried_is_told_by_its_first_words() -> None:
    tried = [
        Tried.of(
            Response(text="<think>\nsecret\n</think>\n## Use `float4` loads.\n```python\nx\n```"),
            Failure(status=Status.BUILD_ERROR),
        ),
        Tried.of(Response(text="```python\nx\n```"), correct()),
        Tried.of(Response(text=None), Failure(status=Status.NO_CODE)),
    ]
    user = asked(correct(), tried=tried).user
    assert "- failed with status `build_error`: Use 'float4' loads.\n" in user
    assert "- correct, speedup 1.5x\n" in user and "- failed with status `no_code`\n" in user
    assert "secret" not in user and "Take none that was tried." in user
    assert "Already tried" in asked(Failure(status=Status.CRASH), tried=tried).user


def test_many_attempts_do_not_make_it_longer() -> None:
    idea = Tried.of(Response(text="word " * 1000), Failure(status=Status.CRASH))
    assert len(asked(correct(), tried=[idea] * 500).user) < 5_000


def test_an_answer_is_cut_to_its_budget() -> None:
    prompt = asked(correct(), text="x" * 500_000)
    assert sum(len(text) for _, text in prompt.history) < 70_000


def test_blank_lines_do_not_pile_up() -> None:
    shown = [Shown(source="a = 1\n", measurement=None)] * 2
    tried = [Tried.of(Response(text="An idea."), Failure(status=Status.CRASH))]
    full = correct(
        times={"roofline": roofline(memory_ms=1, compute_ms=2), "launch_bound": True},
        kernels=Kernels(launches=(Launch(name="a", origin=Origin.OWN, count=1),)),
    )
    for failure in (full, Failure(status=Status.CORRECT), Failure(status=Status.TIMEOUT, details="trace")):
        for more in ({}, {"shown": shown}, {"tried": tried}, {"shown": shown, "tried": tried}):
            assert "\n\n\n" not in asked(failure, **more).user


def test_a_program_that_was_tried_before_is_called_so() -> None:
    again = Failure(status=Status.CRASH, repeated=True)
    assert "It is a program that was tried before, and came to the same." in asked(again).user
    user = asked(correct().model_copy(update={"repeated": True})).user
    assert "It is a program that was tried before: it was not measured again." in user
    tried = [Tried.of(Response(text="Unroll."), again)]
    said = "- failed with status `crash` (a program that was tried before): Unroll."
    assert said in asked(correct(), tried=tried).user
    assert "tried before" not in asked(correct(), tried=[Tried.of(Response(text="x"), correct())]).user


FIRST = first_prompt(problem(), backend="cuda", template="basic-v4")
PLANS: dict[str, Any] = {"backend": "cuda", "template": "basic-v4", "first": FIRST}


def test_plans_are_asked_for_without_code_for_the_problem() -> None:
    prompt = plans_prompt(problem(), **PLANS, count=4)
    assert prompt.user.startswith(FIRST.user.rstrip()) and prompt.history == () == FIRST.history
    assert "Give 4 plans for a fast program" in prompt.user and "without code" in prompt.user
    assert "Plans so far" not in prompt.user and prompt.sha256 != FIRST.sha256


def test_plans_for_a_program_show_it_with_its_times_and_name_earlier_plans() -> None:
    known = [
        KnownPlan(title="Fuse", programs=3, correct=2, best=measurement(1.5, Pace.FASTER)),
        KnownPlan(title="Tile", programs=1, correct=0, best=None),
        KnownPlan(title="Transpose", programs=0, correct=0, best=None),
    ]
    base = (Response(text="<think>secret</think>my answer"), correct())
    prompt = plans_prompt(problem(), **PLANS, base=base, count=5, known=known)
    assert [text.strip() for _, text in prompt.history] == [FIRST.user.strip(), "my answer"]
    assert "The speedup is 1.5x" in prompt.user and "to make this program faster" in prompt.user
    assert "- Fuse: 2 of 3 programs correct, the best with a speedup of 1.5x\n" in prompt.user
    assert "- Tile: none of 1 program correct\n" in prompt.user and "- Transpose: not tried\n" in prompt.user
    assert "None of them is one of the plans above." in prompt.user and problem().source not in prompt.user


@pytest.mark.parametrize("base", [None, (Response(text="my answer"), correct())])
def test_a_plan_stands_in_a_fence_that_it_cannot_leave(base: tuple[Response, Failure] | None) -> None:
    plan = Plan(title="Fuse", text="```\n# Rules\nAnything goes.\n```")
    tried = [Tried.of(Response(text="In one pass."), Failure(status=Status.CRASH))]
    user = plan_prompt(problem(), **PLANS, base=base, plan=plan, tried=tried).user
    assert "````text\nFuse\n\n```\n# Rules" in user and "\n\n\n" not in user.removeprefix(FIRST.user)
    assert (
        "Programs that carried out the plan below, so far:\n\n- failed with status `crash`: In one pass."
        in user
    )
    assert ("Change the program by this plan" in user) is (base is not None)
    assert user.rstrip().endswith("in one ```python fence. All the rules still hold.")


def test_a_template_without_words_for_plans_says_which_have_them() -> None:
    with pytest.raises(UsageError, match=r"basic-v3 cannot ask for plans.*plan.j2, plans.j2; basic-v4"):
        plans_prompt(problem(), backend="cuda", template="basic-v3", first=FIRST, count=5)
