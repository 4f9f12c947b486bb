"""Answers from a recording: no network, no key, the same every time."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from kernelproof.errors import ProviderError, UsageError
from kernelproof.providers.base import ProviderOptions, Question
from kernelproof.providers.body import response_from_body
from kernelproof.providers.recording import Record, RecordKey, read_recording
from kernelproof.providers.registry import provider
from kernelproof.types import Response
from kernelproof.workspace import user_path

PACKAGED = "demo"
"""The name of the recordings inside the package: `prompts/recorded/<backend>.jsonl`."""
_NO_OPTIONS = ProviderOptions()


@provider("replay")
class ReplayProvider:
    """Plays recorded answers. A question that was not recorded is an error of that sample."""

    def __init__(self, source: str, options: ProviderOptions = _NO_OPTIONS) -> None:
        """`source` is a file's path, or `demo` for the packaged recordings.

        Raises UsageError for a file that is not there or is no recording, and for options that only a server
        can obey.
        """
        self._source = source
        options.refuse(self.name, "plays recorded answers")
        self._records = _packaged() if source == PACKAGED else read_recording(user_path(source))

    @property
    def name(self) -> str:
        """`replay:FILE`."""
        return f"replay:{self._source}"

    def questions(self) -> tuple[RecordKey, ...]:
        """The questions this recording answers, sorted: a batch plans its samples and turns by them."""
        return tuple(sorted(self._records))

    async def ask(self, question: Question) -> Response:
        """The recorded answer. Raises ProviderError when there is none, or when an error was recorded."""
        key = RecordKey(question.problem_id, question.backend, question.sample, question.turn)
        record = self._records.get(key)
        if record is None:
            # Retriable: a recording grows.
            missing = f"{self.name} holds no answer for {question}; {self._nearby(key)}"
            raise ProviderError(missing, of_question=True)
        return response_from_body(record.response)

    def turns(self, problem_id: str, backend: str, sample: int) -> int | None:
        """The last turn that was recorded; 1 where none was, so that its absence is on record."""
        found = (k.turn for k in self._records if k[:3] == (problem_id, backend, sample))
        return max(found, default=1)

    async def aclose(self) -> None:
        """Nothing is held open."""

    def _nearby(self, key: RecordKey) -> str:
        """What is recorded instead, for the message."""
        same = [k for k in self.questions() if (k.problem, k.backend) == (key.problem, key.backend)]
        if same:
            return "there are: " + ", ".join(f"sample {k.sample} turn {k.turn}" for k in same[:20])
        problems = sorted({k.problem for k in self._records if k.backend == key.backend})
        return f"its problems for {key.backend}: {', '.join(problems[:40]) or 'none'}"


def _packaged() -> Mapping[RecordKey, Record]:
    folder = files("kernelproof.prompts").joinpath("recorded")
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".jsonl")] if folder.is_dir() else []
    if not found:
        raise UsageError("this installation holds no packaged recordings; give a file: replay:FILE")
    records: dict[RecordKey, Record] = {}
    for file in sorted(found, key=lambda entry: entry.name):
        for key, record in read_recording(file).items():
            if f"{key.backend}.jsonl" != file.name:
                raise UsageError(f"{file}: {key} belongs into {key.backend}.jsonl")
            records[key] = record
    return records
