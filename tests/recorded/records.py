"""The packaged recordings, with the status that each record's note expects."""

from __future__ import annotations

import re
from importlib.resources import files

from kernelproof.extraction import extract
from kernelproof.providers.body import response_from_body
from kernelproof.providers.recording import Record, RecordKey, read_recording
from kernelproof.types import Extraction, Stage, Status

BACKENDS = ("cpp", "cuda")
"""Those that `make demo` takes, by the machine it runs on."""
NO_PROGRAM = frozenset(status for status in Status if status.stage is Stage.EXTRACTION)
"""Statuses that extraction gives: there is no program to judge."""


def records(backend: str) -> dict[RecordKey, Record]:
    """The recording of one backend, by key."""
    return read_recording(files("kernelproof.prompts").joinpath("recorded", f"{backend}.jsonl"))


def everything() -> list[Record]:
    """All records of all backends."""
    return [record for backend in (*BACKENDS, "triton") for record in records(backend).values()]


def expected(record: Record) -> Status:
    """The status that the note announces. Raises ValueError for a note without one."""
    match = re.match(r"\[expected: (\w+)\] \S", record.note)
    return Status(match[1] if match else "")


def extracted(record: Record) -> Extraction:
    """What extraction finds in the record's response."""
    return extract(response_from_body(record.response))


def name(record: Record) -> str:
    """The record's name in a test's id: `cpp level1/5 sample 1 turn 2: correct`."""
    return f"{record.backend} {record.problem} sample {record.sample} turn {record.turn}: {expected(record)}"
