"""A batch's table holds what matters on narrow and wide screens, and obeys nobody's text."""

from __future__ import annotations

import pytest

from kernelproof.report.plain import screen
from kernelproof.report.progress import (
    cost,
    dollars,
    duration,
    failure_line,
    print_fastest_attempts,
    progress_screen,
    summary_line,
    tokens,
)
from kernelproof.types import Pace, Status
from kernelproof.types.run import (
    BatchProgress,
    FailureCount,
    FastAttempt,
    ModelProgress,
    TokenCounts,
)

LONG = "openai:Qwen/Qwen3-Coder-480B-A35B-Instruct"
HOSTILE = "openai:\x1b]0;gone\x07\x1b[2J[red]x[/red]\n\u202e" + "y" * 500


def model(name: str, **facts: object) -> ModelProgress:
    """A model in the midst of everything."""
    usual: dict[str, object] = {
        "model": name,
        "samples": 400,
        "over": 123,
        "answered": 150,
        "places": {"sent": 3, "answering": 5, "waiting": 2, "queued": 11, "building": 2, "timing": 1},
        "tokens_per_s": 312.4,
        "silence_s": 75.0,
        "waiting_for": "429: slow down",
        "statuses": {Status.CORRECT: 77, Status.WRONG_OUTPUT: 40, Status.BUILD_ERROR: 6},
        "fastest": 2.345,
        "tokens": TokenCounts(prompt=250_000, cached=100_000, completion=1_200_000, reasoning=900_000),
        "cost_usd": 3.21,
        "projected_usd": 10.4,
        "left_s": 4_000.0,
    }
    return ModelProgress.model_validate(usual | facts)


def fast(model: str) -> FastAttempt:
    return FastAttempt(
        model=model,
        problem_id="level2/7",
        attempt_id=17,
        sample=0,
        turn=1,
        speedup=2.345,
        low=2.301,
        high=2.377,
        pace=Pace.FASTER,
        claimed=2.301,
    )


def shown(width: int, *models: ModelProgress) -> str:
    fastest = (fast(models[0].model),)
    progress = BatchProgress(elapsed_s=1_800.0, models=models, fastest=fastest, busy_share=0.75, left_s=4_000)
    console = screen()
    console.width = width
    with console.capture() as captured:
        console.print(progress_screen(progress, console))
    return captured.get()


@pytest.mark.parametrize("width", [80, 100, 140, 240])
def test_figures_are_whole_on_every_width(width: int) -> None:
    text = shown(width, model("openai:small"), model(LONG))
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    table = lines[: lines.index("")]
    for word in ("samples", "tokens/s", "correct", "best", "cost"):
        assert word in table[0]
    for figure in ("123/400", "312", "77/123", "2.35", "$3.21"):
        assert any(figure in line for line in table), figure
    assert any("246/800" in line and "154/246" in line and "$6.42" in line for line in table)
    assert "".join("".join(line[:18].split()) for line in table).count("Instruct") <= 1
    assert "22 queued, 4 building, 2 timing" in text
    assert "about 67 min left" in text and "75 % busy" in text
    assert "4 questions to be sent again later: 429: slow down" in text
    assert "2.35× [2.30, 2.38] faster  level2/7  #17" in text


def test_a_wide_screen_shows_every_place() -> None:
    heading = shown(140, model("openai:small")).splitlines()[0].split()
    places = ["asked", "answering", "tokens/s", "waiting", "queued", "building", "checking", "timing"]
    assert heading == ["model", "samples", *places, "correct", "best", "tokens", "cost", "left"]


def test_a_table_of_what_is_over_has_no_empty_columns() -> None:
    over = model("openai:small", over=400, places={}, tokens_per_s=None, left_s=0.0)
    heading = shown(140, over).splitlines()[0].split()
    assert heading == ["model", "samples", "correct", "best", "tokens", "cost", "left"]


@pytest.mark.parametrize("width", [80, 140])
def test_a_hostile_name_is_text_of_bounded_length(width: int) -> None:
    text = shown(width, model(HOSTILE, waiting_for=HOSTILE), model("b"))
    assert not set(text) & {"\x1b", "\x07", "\u202e"}
    assert "[red]x[/red]" in text.replace("\n", "") and text.count("\n") < 40


def test_a_name_in_wide_characters_keeps_the_table_in_its_width() -> None:
    from rich.cells import cell_len

    text = shown(80, model("openai:" + "模型" * 40))
    assert max(map(cell_len, text.splitlines())) <= 80


def test_unknown_is_never_zero() -> None:
    unknown = model("m", cost_usd=None, unpriced=150, tokens=TokenCounts(unknown=150))
    assert cost(unknown) == "unknown: 150 answers without a price" and tokens(unknown) == "unknown"
    assert "$" not in summary_line(BatchProgress(elapsed_s=1, models=(unknown,)))
    partly = model("m", unpriced=1)
    assert cost(partly) == "at least $3.21, 1 answer without a price"
    assert cost(model("m")) == "$3.21 so far, about $10.40 at the end"
    assert cost(model("m", over=400)) == "$3.21"
    assert cost(model("m", answered=0)) == ""
    assert tokens(model("m")) == (
        "250,000 for prompts (100,000 cached), 1,200,000 for answers (900,000 reasoning)"
    )


def test_the_whole_of_two_models_is_unknown_where_one_is() -> None:
    priced, free = model("a"), model("b", cost_usd=None, unpriced=150, projected_usd=None)
    whole = BatchProgress(elapsed_s=1, models=(priced, free)).whole
    assert whole.cost_usd == 3.21 and whole.unpriced == 150 and whole.projected_usd is None
    assert BatchProgress(elapsed_s=1, models=(priced, priced)).whole.projected_usd == 20.8


def test_the_best_at_the_end_fit_a_narrow_screen() -> None:
    console = screen()
    console.width = 80
    with console.capture() as captured:
        print_fastest_attempts([fast(LONG)], console)
    row = captured.get().splitlines()[-1]
    assert row.startswith("level2/7  2.35× [2.30, 2.38] faster") and "#17" in row and "…" in row


def test_a_long_reason_is_quoted_in_short() -> None:
    reason = "values: drawn: output 0: 12 of 64 elements wrong, first at [0, 2]: expected 1, got 2"
    told = FailureCount(status=Status.WRONG_OUTPUT, count=2, reason=reason, attempt_id=3)
    assert failure_line(told).endswith("output 0: 12 of 64 elements wrong (kernelproof show 3)")


def test_a_failure_says_its_reason_and_where_to_look() -> None:
    told = FailureCount(status=Status.PROVIDER_ERROR, count=12, reason="HTTP 500: \x1b[1mno", attempt_id=3)
    assert failure_line(told) == "  12  provider_error: HTTP 500: no (kernelproof show 3)"
    untold = FailureCount(status=Status.NO_CODE, count=1, reason="")
    assert failure_line(untold) == f"   1  no_code: {Status.NO_CODE.meaning.rstrip('.')}"


def test_durations_and_money() -> None:
    assert [duration(s) for s in (0, 99, 100, 3599, 7200, 100_000, 250_000)] == [
        *("0 s", "99 s", "2 min", "60 min", "2 h 0 min", "27 h 47 min", "2 d 21 h"),
    ]
    assert [dollars(v) for v in (0, 0.0123, 0.5, 1.234, 12_345.6)] == [
        *("$0.00", "$0.012", "$0.50", "$1.23", "$12,345.60"),
    ]
