"""Recordings: what is played, what is refused, and that what was recorded plays again."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path
from typing import Any

import anyio
import pytest

from kernelproof.errors import ProviderError, UsageError
from kernelproof.providers import (
    Provider,
    ProviderOptions,
    Question,
    RecordingProvider,
    RecordKey,
    ReplayProvider,
    open_provider,
)
from kernelproof.providers.body import response_from_body
from kernelproof.providers.recording import append_record, read_recording
from kernelproof.types import Response
from tests.providers.questions import question
from tests.providers.server import completion


def record(**changes: Any) -> str:
    fields = {"problem": "level1/1", "backend": "cpp", "sample": 0, "turn": 1, "response": completion()}
    return json.dumps(fields | changes)


def recording(path: Path, *lines: str) -> str:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"replay:{path}"


def ask(provider: Provider, asked: Question) -> Response:
    return anyio.run(provider.ask, asked)


class Fixed:
    """A provider that says the next of its answers each time."""

    name = "fixed:answers"

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)

    async def ask(self, question: Question) -> Response:
        return response_from_body(completion(self._answers.pop(0)))

    async def aclose(self) -> None:
        self._answers.clear()


def test_answers_are_keyed_by_problem_backend_sample_and_turn(tmp_path: Path) -> None:
    keys: list[dict[str, Any]] = [
        {},
        {"sample": 1},
        {"turn": 2},
        {"backend": "cuda"},
        {"problem": "level2/1"},
    ]
    lines = [record(**key, response=completion(f"answer {i}")) for i, key in enumerate(keys)]
    provider = open_provider(recording(tmp_path / "r.jsonl", *lines))
    for i, key in enumerate(keys):
        assert ask(provider, question(**key)).text == f"answer {i}"
    assert isinstance(provider, ReplayProvider)
    assert len(provider.questions()) == len(keys)
    assert provider.questions()[0] == RecordKey("level1/1", "cpp", 0, 1)


def test_a_question_that_was_not_recorded_is_an_error_of_that_sample(tmp_path: Path) -> None:
    provider = open_provider(recording(tmp_path / "r.jsonl", record()))
    with pytest.raises(ProviderError, match=r"sample 3, turn 1; there are: sample 0 turn 1") as caught:
        ask(provider, question(sample=3))
    assert caught.value.retriable, "a recording may grow"
    with pytest.raises(ProviderError, match="problems for cpp: level1/1"):
        ask(provider, question("level3/9"))


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("{not json", "JSON"),
        ("[]", "the line must be a table of names and values, not an empty list"),
        (record(backend="metal"), "backend"),
        (record(turn=0), "turn"),
        (record(sample="0"), "sample"),
        (record(extra=1), "extra"),
        (record(response="text"), "response"),
        (record(), "already on line 1"),
    ],
)
def test_a_bad_line_is_named_by_file_and_line(tmp_path: Path, bad: str, says: str) -> None:
    path = tmp_path / "r.jsonl"
    with pytest.raises(UsageError, match=says) as caught:
        open_provider(recording(path, record(), "", bad))
    assert f"{path}:3: " in str(caught.value)


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        open_provider(f"replay:{tmp_path}/none.jsonl")


@pytest.mark.parametrize("spec", ["gpt", "gpt:4", "openai:", "replay: ", ""])
def test_an_unknown_kind_of_model_is_a_usage_error(spec: str) -> None:
    with pytest.raises(UsageError, match="openai:MODEL"):
        open_provider(spec)


def test_settings_that_a_recording_cannot_obey_are_refused(tmp_path: Path) -> None:
    spec = recording(tmp_path / "r.jsonl", record())
    with pytest.raises(UsageError, match="no effect"):
        open_provider(spec, ProviderOptions(sampling={"temperature": 0.2}))
    with pytest.raises(UsageError, match="no effect"):
        open_provider(spec, ProviderOptions(base_url="http://localhost"))


def test_what_was_recorded_plays_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "r.jsonl"
    odd = 'line\nbreak \u2028 "quotes" ```` \x00 \ud800'
    recorder = RecordingProvider(Fixed(odd, "b"), path)
    assert recorder.name == "fixed:answers"
    said = [ask(recorder, question()), ask(recorder, question(turn=2))]
    player = open_provider(f"replay:{path}")
    played = [ask(player, question()), ask(player, question(turn=2))]
    assert played == said
    assert played[0].text == odd


def test_the_first_answer_to_a_question_stays(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recorder = RecordingProvider(Fixed("first", "second"), path)
    assert [ask(recorder, question()).text for _ in range(2)] == ["first", "second"]
    again = RecordingProvider(Fixed("third"), path)
    assert ask(again, question()).text == "third"
    assert ask(open_provider(f"replay:{path}"), question()).text == "first"


def test_a_recording_is_never_appended_to_another_kind_of_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n")
    with pytest.raises(UsageError, match=r"notes\.txt:1"):
        RecordingProvider(Fixed(), path)
    assert path.read_text() == "my notes\n"


def _append_many(path: Path, sample: int) -> None:
    for turn in range(1, 21):
        append_record(path, RecordKey("level1/1", "cpp", sample, turn), completion("x" * 100_000))


def test_writers_at_the_same_time_do_not_mix_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_append_many, args=(path, sample)) for sample in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(read_recording(path)) == 40
