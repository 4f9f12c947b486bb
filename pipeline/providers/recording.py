"""Recordings: JSONL, an answer a line, keyed by problem, backend, sample and turn; written, and replayed."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, ValidationError

from kernelproof.errors import MachineError, ProviderError, UsageError
from kernelproof.providers.body import response_from_body
from kernelproof.providers.protocol import (
    BatchJournal,
    KeepsBatches,
    Provider,
    ProviderOptions,
    Question,
    provider,
)
from kernelproof.regular_files import LINES_BYTES, read_regular
from kernelproof.types import FrozenRecord, Response
from kernelproof.types.record import BackendName, explain
from kernelproof.workspace import user_path


class RecordKey(NamedTuple):
    problem: str
    backend: str
    sample: int
    turn: int


class Record(FrozenRecord):
    problem: str = Field(min_length=1)
    """The problem's id: `level1/23`."""
    backend: BackendName
    sample: int = Field(ge=0, strict=True)
    turn: int = Field(ge=1, strict=True)
    note: str = ""
    """For people: what the answer is an example of."""
    response: dict[str, Any]
    """The `chat.completion` body, as the server sent it."""

    @property
    def key(self) -> RecordKey:
        """The question this record answers."""
        return RecordKey(self.problem, self.backend, self.sample, self.turn)


def read_recording(file: Traversable) -> dict[RecordKey, Record]:
    """The records of a file by key. Raises UsageError with file and line of a bad or repeated record."""
    try:
        lines = read_regular(Path(str(file)), LINES_BYTES).split(b"\n")
    except OSError as error:
        raise UsageError(f"the recording {file} cannot be read: {error.strerror or error}") from error
    records: dict[RecordKey, Record] = {}
    lines_of: dict[RecordKey, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        record = _parsed(line, f"{file}:{number}")
        if record.key in records:
            raise UsageError(
                f"{file}:{number}: {record.key} is already on line {lines_of[record.key]}; keep one of them"
            )
        records[record.key] = record
        lines_of[record.key] = number
    return records


def _parsed(line: bytes, place: str) -> Record:
    try:
        return Record.model_validate(json.loads(line))
    except (ValueError, RecursionError) as error:
        told = (
            explain(error, {"": "the line"})
            if isinstance(error, ValidationError)
            else f"not JSON in UTF-8: {error}"
        )
        raise UsageError(f"{place}: {told}") from error


class RecordingProvider:
    """Passes questions on and appends each answer to a recording, which `replay:FILE` then plays.

    The first answer to a question stays: when it is asked again (after a crash, say), the new answer is
    returned but not written, because a recording holds one answer for each question.
    """

    def __init__(self, inner: Provider, path: Path) -> None:
        """Raises UsageError when `path` holds something other than a recording, or cannot be written."""
        self._inner = inner
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except OSError as error:
            raise UsageError(f"the recording {path} cannot be written: {error.strerror or error}") from error
        self._written = set(read_recording(path))

    @property
    def name(self) -> str:
        return self._inner.name

    async def ask(self, question: Question) -> Response:
        """The inner provider's answer, written down before it is returned."""
        response = await self._inner.ask(question)
        key = RecordKey(question.problem_id, question.backend, question.sample, question.turn)
        if key not in self._written:
            append_record(self._path, key, response.raw)
            self._written.add(key)
        return response

    def turns(self, problem_id: str, backend: str, sample: int) -> int | None:
        return self._inner.turns(problem_id, backend, sample)

    def keep_batches(self, journal: BatchJournal) -> None:
        """As the inner provider does, if it does."""
        if isinstance(self._inner, KeepsBatches):
            self._inner.keep_batches(journal)

    async def aclose(self) -> None:
        """Close the inner provider."""
        await self._inner.aclose()


def append_record(path: Path, key: RecordKey, body: Mapping[str, Any], note: str = "") -> None:
    """Append one record as a whole line.

    Writers at the same time take turns by the file's lock. Raises MachineError when the line cannot be
    written whole (the disk is full, say); the part that was written is taken back.
    """
    record = Record(**key._asdict(), note=note, response=dict(body))
    # ASCII escapes: a server's lone surrogates have no UTF-8 form, and must not be lost.
    line = json.dumps(record.model_dump(), ensure_ascii=True).encode() + b"\n"
    try:
        with path.open("ab", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            start = os.fstat(file.fileno()).st_size
            if file.write(line) != len(line):
                file.truncate(start)
                raise OSError("no space for the whole line")
    except OSError as error:
        raise MachineError(f"cannot append to the recording {path}: {error.strerror or error}") from error


PACKAGED = "demo"
"""The name of the recordings inside the package: `prompts/recorded/<backend>.jsonl`."""
_NO_OPTIONS = ProviderOptions()


@provider("replay")
class ReplayProvider(Provider):
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
