"""The rows of an export and their columns: a row for each attempt and setting, read some at a time.

Where the view `attempts_flat` has a column of the same name, it means the same.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

from kernelproof.db.reported import AuditResult
from kernelproof.db.rows import batched
from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.leaderboard_query import Chosen
from kernelproof.db.sql_views import VIEWS
from kernelproof.db.store import Store
from kernelproof.db.views import StoredAttempt, StoredVerification
from kernelproof.errors import UsageError
from kernelproof.report.board_columns import part
from kernelproof.report.leaderboard import nothing, remarks
from kernelproof.types import Measurement, Setting, Status
from kernelproof.types.measurement import resolved
from kernelproof.version import policy_of

TOGETHER = 50
Columns = dict[str, Any]
"""A row of an export: the name of each of FIELDS, and its value."""


@dataclass(frozen=True)
class Export:
    store: Store
    filters: Filters
    chosen: Chosen
    remarks: tuple[str, ...]
    """A sentence for each reason why attempts are left out."""

    def rows(self, *, deciding: bool = False) -> Iterator[Columns]:
        """The attempts, one after the other. `deciding`: only the one of each sample that counts for it."""
        for some in batched(self.chosen.deciding() if deciding else self.chosen, TOGETHER):
            audits = self.store.audits.newest([each.verification_id for each in some if each.verification_id])
            attempts = self.store.load_attempts([each.attempt_id for each in some])
            for each, attempt in zip(some, attempts, strict=True):
                judged = next((v for v in attempt.verifications if v.id == each.verification_id), None)
                audit = audits.get(each.verification_id) if each.verification_id else None
                row = _Row(attempt, each.setting, judged, each.decides, audit)
                yield {field.name: field.cell(row) for field in FIELDS}


def gather(store: Store, filters: Filters) -> Export:
    """The attempts that pass the filters. Raises UsageError, with the values that there are, for none."""
    chosen = store.scores.chosen(filters)
    board = store.scores.leaderboard(filters, ())
    if not len(chosen):
        raise UsageError(nothing(board, "export"))
    return Export(store, filters, chosen, tuple(remarks(board)))


@dataclass(frozen=True)
class _Row:
    attempt: StoredAttempt
    setting: Setting
    judged: StoredVerification | None
    decides: bool
    audit: AuditResult | None

    @property
    def status(self) -> Status:
        if self.judged is not None:
            return self.judged.verification.status
        assert self.attempt.status is not None
        return self.attempt.status

    @property
    def reason(self) -> str:
        if self.judged is not None:
            return self.judged.verification.reason
        return self.attempt.extraction.reason if self.attempt.extraction else self.status.meaning

    @property
    def times(self) -> Measurement | None:
        """The times that count: those of a correct program, but of no quick look."""
        judged = self.judged.verification if self.judged else None
        if judged is None or judged.status is not Status.CORRECT or judged.settings.bar is not None:
            return None
        return judged.measurement

    @property
    def messages(self) -> list[dict[str, str]] | None:
        prompt = self.attempt.prompt
        if prompt is None:
            return None
        return [{"role": role, "content": content} for role, content in prompt.turns if content]


_FLAT = next(view.columns for view in VIEWS if view.name == "attempts_flat")
_part = partial(part, meanings={name: words.replace("NULL", "null") for name, words in _FLAT.items()})
_row = _part(lambda row: row)
_attempt = _part(attrgetter("attempt"))
_run = _part(attrgetter("attempt.run"))
_problem = _part(attrgetter("attempt.problem"))
_setting = _part(attrgetter("setting"))
_verdict = _part(lambda row: row.judged and row.judged.verification)
_times = _part(attrgetter("times"))
_response = _part(attrgetter("attempt.response"))
_usage = _part(lambda row: row.attempt.response and row.attempt.response.usage)


def _calls(of: Callable[[list[float]], float]) -> Callable[[Measurement], float | None]:
    """A figure of the candidate's single calls."""

    def figure(times: Measurement) -> float | None:
        calls = [ms for block in times.candidate_samples_ms for ms in block]
        return of(calls) if calls else None

    return figure


def _compiled(times: Measurement) -> float | None:
    return next((each.speedup for each in times.against if each.baseline == "compile"), None)


FIELDS = [
    _attempt("attempt_id", int, get="id"),
    _row("verification_id", int, get=lambda row: row.judged and row.judged.id),
    _attempt("run_id", int),
    _run("run", str, get="name"),
    _run("kind", str),
    _run("model", str),
    _run("template", str),
    _run("strategy", str, get=lambda run: run.strategy_name if run.kind == "generate" else None),
    _problem("problem_id", str, get="id"),
    _problem("problem_sha256", str, get="sha256"),
    _problem("suite", str),
    _problem("level", int),
    _problem("problem", str, get="name"),
    _attempt("sample", int, get="key.sample"),
    _attempt("turn", int, get="key.turn"),
    _attempt("parent_id", int, "The attempt that this one repairs or improves."),
    _row(
        "decides",
        bool,
        "Whether the sample counts by this attempt: by its fastest correct turn, else by its last turn.",
    ),
    _attempt("created", str),
    _row("status", str, "How the attempt ended.", "status.value"),
    _row("reason", str, "The reason, in a sentence; it may quote the program."),
    _row(
        "judged",
        bool,
        "Whether it was judged, as correct or not: the denominator of rates.",
        "status.counts_against_model",
    ),
    _row("built", bool, "Whether the candidate was built, or needed no build.", "status.is_built"),
    _row("correct", bool, "Whether it is correct.", lambda row: row.status is Status.CORRECT),
    *(_setting(name, bool if name == "own_kernel" else str) for name in Setting.model_fields),
    _verdict("rigor", str, get="settings.rigor"),
    _verdict("policy", str, get=lambda verdict: policy_of(verdict.verifier)),
    _verdict("error_class", str),
    _verdict("flags", str, "The flags, with spaces between them.", lambda verdict: " ".join(verdict.flags)),
    _times("speedup", float),
    _times("speedup_low", float, get="speedup_interval.low"),
    _times("speedup_high", float, get="speedup_interval.high"),
    _times("pace", str, get="pace.value"),
    _times("counted_speedup", float, get=lambda times: resolved(times.speedup, times.pace)),
    _times("ranking_speedup", float, get="claimed"),
    _times("candidate_ms", float),
    _times("baseline_ms", float),
    _times("compile_speedup", float, get=_compiled),
    _times("roofline_fraction", float, get=lambda times: times.roofline and times.roofline.fraction),
    _usage("prompt_tokens", int, "Tokens of the question, as the server counted them; null for unknown."),
    _usage("completion_tokens", int, "Tokens of the answer, thoughts included; null for unknown."),
    _response("cost_usd", float, "Cost of the answer in US dollars; null for unknown."),
    _row("messages", list, "The question: messages with `role` and `content`."),
    _response("response", str, "The answer's text, as it came.", "text"),
    _response("reasoning", str, "The answer's thoughts, where the server sent them apart."),
    _attempt("source", str, "The program that was found in the answer."),
    _problem("reference", str, "The source of the problem's reference.", "source"),
    _part(attrgetter("audit"))(
        "audit",
        str,
        "The finding of the verification's newest audit: `same` and `faster` confirm it; null where it was "
        "never audited.",
        "finding.value",
    ),
    _part(attrgetter("audit"))("audited", str, "When that audit was stored (UTC, ISO 8601).", "created"),
    _attempt("finished", str, "When the attempt ended (UTC, ISO 8601)."),
    _times("calls", int, "The candidate's single calls that were timed; null for none.", _calls(len)),
    _times("call_ms_min", float, "The fastest of them.", _calls(min)),
    _times("call_ms_max", float, "The slowest of them.", _calls(max)),
    _times("call_ms_std", float, "Their standard deviation.", _calls(statistics.pstdev)),
    _usage("cached_tokens", int, "Tokens of the question that the server had cached; null for unknown."),
    _usage("reasoning_tokens", int, "Tokens of the answer that were thoughts; null for unknown."),
    _response("finish_reason", str, "Why the answer ended, in the server's words."),
    _response("served_model", str, "The model that the server says it asked."),
    _response("latency_s", float, "Seconds from the question to the end of the answer."),
]
"""Columns are only ever added."""
