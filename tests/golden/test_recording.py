"""A recording of another day is played, and written again as it was."""

from __future__ import annotations

from pathlib import Path

import anyio

from kernelproof.providers import RecordingProvider, ReplayProvider
from kernelproof.providers.protocol import Question
from kernelproof.types import Prompt
from tests.golden.loading import FILES

RECORDING = FILES / "recording.jsonl"
PROMPT = Prompt(template="basic-v1", template_sha256="1" * 64, system="s", user="u", sha256="4" * 64)


def test_it_is_played_and_written_byte_for_byte(tmp_path: Path) -> None:
    player = ReplayProvider(str(RECORDING))
    recorder = RecordingProvider(player, tmp_path / "again.jsonl")
    texts = []
    for problem, backend, sample, turn in player.questions():
        response = anyio.run(recorder.ask, Question(problem, backend, sample, turn, PROMPT))
        texts.append(response.text)
    assert (tmp_path / "again.jsonl").read_bytes() == RECORDING.read_bytes()
    assert texts == ["first", "é \ud800", "", "cut"]
