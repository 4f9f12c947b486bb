"""Several models, limits, parameters, configurations; and what a second `generate` reuses of the first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelproof.types import Status
from tests.cli import material
from tests.cli.material import answer, fenced
from tests.cli.program import Program
from tests.faultserver import FaultServer, start
from tests.providers.server import Step, serve

QUICK = ("--backend", "cpp", "--no-measure", "--trials", "1")


def asked(suite: Path, server: FaultServer, *more: object, model: str = "openai:any") -> tuple[object, ...]:
    usual = QUICK[:-2] if "--trials" in more else QUICK
    command = ("generate", "level1/1", "--suite", suite, "--model", model, "--base-url", server.url)
    return (*command, *usual, *more)


@pytest.fixture
def night(program: Program) -> Program:
    program.extra = {"OPENAI_API_KEY": "sk-secret"}
    return program


@pytest.mark.ci
def test_other_settings_of_the_judging_ask_nothing_again(night: Program, suite: Path, tmp_path: Path) -> None:
    source = tmp_path / "answer.md"
    source.write_text(fenced(material.right()))
    with start(answer=source) as server:
        night.run(*asked(suite, server))
        assert server.counts()["requests"] == 1
        night.run(*asked(suite, server, "--samples", 2, "--trials", 2))
        assert server.counts()["requests"] == 2
        # Another name asks for other answers.
        night.run(*asked(suite, server, "--run", "fresh"))
        assert server.counts()["requests"] == 3
    attempts = night.attempts()
    assert [a.status for a in attempts] == [Status.CORRECT] * 4
    found = [(a.run.name, a.run.verify.trials, a.key.sample, a.responses[0].reused) for a in attempts]
    assert sorted(found, key=str) == [
        ("fresh", 1, 0, False),
        (None, 1, 0, False),
        (None, 2, 0, True),
        (None, 2, 1, False),
    ]
    with night.store() as store:
        assert store.spent([1, 2, 3]).completion_tokens == 3 * 50


def test_several_models_in_one_command(night: Program, suite: Path) -> None:
    with start() as server:
        done = night.run(
            *asked(suite, server, "--model", "openai:other", "--samples", 2, "--param", "top_p=0.9")
        )
        assert server.counts()["requests"] == 4
    attempts = night.attempts()
    assert sorted(a.run.model for a in attempts) == ["openai:any"] * 2 + ["openai:other"] * 2
    assert all(a.run.sampling == {"top_p": 0.9} for a in attempts)
    assert "4 attempts" in done.stdout


def test_a_model_that_is_refused_does_not_stop_the_others(night: Program, suite: Path) -> None:
    night.extra = {}
    with start() as server:
        done = night.run(*asked(suite, server, "--model", "openai:bad_key", "--samples", 3), code=3)
        assert server.counts()["answered"] and sum(server.counts()["answered"].values()) == 3
    assert "openai:bad_key: Incorrect API key provided" in done.stderr
    assert "no key is set: put one into OPENAI_API_KEY" in done.stderr


@pytest.mark.ci
def test_equal_failures_in_a_row_stop_the_run(night: Program, suite: Path) -> None:
    more = ("--samples", 50, "--retries", 0, "--stop-after-errors", 4, "--concurrency", 1)
    with start() as server:
        done = night.run(*asked(suite, server, *more, model="openai:broken"), code=3)
        assert server.counts()["requests"] == 4
    assert "4 questions in a row failed alike: openai:broken: it broke" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("model", ["too_long", "flagged"])
def test_errors_of_one_prompt_each_do_not_stop_the_run(night: Program, suite: Path, model: str) -> None:
    more = ("--samples", 8, "--stop-after-errors", 3, "--concurrency", 1)
    with start() as server:
        done = night.run(*asked(suite, server, *more, model=f"openai:{model}"), code=3)
        assert server.counts()["requests"] == 8
    assert "in a row" not in done.stderr
    assert list(night.statuses().values()) == [Status.PROVIDER_ERROR] * 8


def test_a_prompt_that_cannot_fit_ends_as_a_refused_one_and_is_not_sent(night: Program, suite: Path) -> None:
    with start() as server:
        short = ("--samples", 12, "--context-length", 100)
        dry = night.run(*asked(suite, server, *short, "--dry-run"))
        assert "12 of them cannot fit the context of 100 tokens (--context-length)" in dry.stdout
        done = night.run(*asked(suite, server, *short), code=3)
        assert "longer than the model's context of 100 tokens" in done.stdout
        night.run(*asked(suite, server, "--samples", 12, "--context-length", 100_000), code=3)
        assert server.counts()["requests"] == 0
        assert set(night.statuses().values()) == {Status.PROVIDER_ERROR}
        again = ("--context-length", 100_000, "--again", "provider")
        night.run(*asked(suite, server, "--samples", 12, *again))
        assert server.counts()["requests"] == 12
    assert set(night.statuses().values()) == {Status.NO_CODE}


@pytest.mark.ci
@pytest.mark.parametrize(
    ("option", "value", "answers"), [("--max-attempts", 5, 5), ("--max-tokens-total", 1800, 12)]
)
def test_a_limit_ends_the_run_cleanly(
    night: Program, suite: Path, option: str, value: int, answers: int
) -> None:
    command = ("--samples", 40, "--concurrency", 2, option, value)
    with start() as server:
        done = night.run(*asked(suite, server, *command))
        assert server.counts()["requests"] in (answers, answers + 1)
        assert f"limit reached: {option}" in done.stdout
        before = server.counts()["requests"]
        night.run(*asked(suite, server, *command))
        assert server.counts()["requests"] == before


@pytest.mark.parametrize(
    "limit",
    [("--max-tokens-total", 300), ("--max-cost", "0.0001", "--price", "1,10")],
)
def test_a_budget_smaller_than_one_question_is_said_at_once(
    night: Program, suite: Path, limit: tuple[object, ...]
) -> None:
    with start() as server:
        done = night.run(*asked(suite, server, *limit), code=2)
        assert server.counts()["requests"] == 0
    assert f"{limit[0]} {limit[1]} is less than one question to openai:" in done.stderr


def test_a_price_makes_a_cost_and_a_limit(night: Program, suite: Path) -> None:
    # 100 and 50 tokens: 0.0001 + 0.0005 dollars an answer.
    more = ("--price", "1,10", "--max-cost", "0.002", "--samples", 40, "--concurrency", 1)
    with start() as server:
        night.run(*asked(suite, server, *more))
        assert server.counts()["requests"] == 4
    with night.store() as store:
        assert store.spent([1]).cost_usd == pytest.approx(4 * 0.0006)


def test_a_configuration_and_a_run_like_it(night: Program, suite: Path, tmp_path: Path) -> None:
    with start() as server:
        config = tmp_path / "run.toml"
        config.write_text(
            f'problems = "level1/1"\nsuite = "{suite}"\nrun = "night"\nsamples = 2\n'
            f'base_url = "{server.url}"\nconcurrency = 3\n[verify]\nbackend = "cpp"\nmeasure = false\n'
            '[[models]]\nmodel = "openai:one"\n[[models]]\nmodel = "openai:two"\nsamples = 1\n'
        )
        night.run("generate", "--config", config)
        assert server.counts()["requests"] == 3
        night.run("generate", "--like", "night", "--samples", 3)
        assert server.counts()["requests"] == 4  # `two` keeps its own number of samples
        night.run("generate", "--like", "night", "--run", "second", "--model", "openai:three")
        assert server.counts()["requests"] == 7
        wrong = night.run("generate", "--config", config, "--like", "nobody", code=2)
    assert "no run 'nobody'" in wrong.stderr
    assert {(a.run.name, a.run.model) for a in night.attempts()} == {
        ("night", "openai:one"),
        ("night", "openai:two"),
        ("second", "openai:three"),
    }
    assert all(a.run.verify.measure is False for a in night.attempts())


@pytest.mark.ci
def test_again_redoes_only_what_ended_so(night: Program, suite: Path) -> None:
    with serve(Step(answer("no code today")), Step(answer(fenced(material.right())))) as server:
        command = (
            "generate",
            "level1/1",
            "--suite",
            suite,
            "--model",
            "openai:any",
            "--base-url",
            server.url,
        )
        night.run(*command, *QUICK, "--samples", 2, "--concurrency", 1)
        first = {a.key.sample: a for a in night.attempts()}
        assert sorted(a.status or "" for a in first.values()) == ["correct", "no_code"]
        done = night.run(*command, *QUICK, "--samples", 9, "--again", "correct")
        assert len(server.requests) == 2
    again = {a.key.sample: a for a in night.attempts()}
    assert {n: len(a.verifications) for n, a in again.items()} == {
        n: 2 if a.status is Status.CORRECT else 0 for n, a in first.items()
    }
    assert done.returncode == 0


def test_a_dry_run_knows_what_is_stored_and_needs_no_key(program: Program, suite: Path) -> None:
    with start() as server:
        program.extra = {"OPENAI_API_KEY": "none"}
        program.run(*asked(suite, server, "--samples", 3))
        program.extra = {}
        before = server.counts()["requests"]
        dry = program.run(*asked(suite, server, "--samples", 8), "--price", "1,10", "--dry-run", "--json")
        (found,) = json.loads(dry.stdout)["models"]
        assert server.counts()["requests"] == before
        program.extra = {"OPENAI_API_KEY": "none"}
        program.run(*asked(suite, server, "--samples", 8, "--price", "1,10"))
        assert server.counts()["requests"] - before == found["questions"] == 5
    with program.store() as store:
        spent = store.spent([1])
    assert found["prompt_tokens"] == pytest.approx(5 * 100, rel=0.2)
    assert found["completion_tokens"] == 5 * 50
    assert found["cost_usd"] == pytest.approx(spent.cost_usd, rel=0.2)


def test_a_run_without_a_key_says_which_one(program: Program, suite: Path) -> None:
    command = ("generate", "level1/1", "--suite", suite, "--model", "openai:m", *QUICK)
    done = program.run(*command, "--key-variable", "MINE", code=3)
    assert "needs a key in MINE" in done.stderr and done.stderr.count("\n") == 1
