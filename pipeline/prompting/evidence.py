"""The evidence that a question shows: what the last answer came to, and other attempts of the sample.
Compiler logs and program output are cut down to what a model needs to repair its program.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kernelproof.analysis.analyse import Analysis, analyse
from kernelproof.extraction import without_thinking
from kernelproof.types import (
    BuildState,
    Check,
    ErrorStatistics,
    Extraction,
    Finding,
    FrozenRecord,
    Kernels,
    Measurement,
    Response,
    Status,
    Verification,
)
from kernelproof.wording import counted, encodable


class Failure(FrozenRecord):
    """The evidence a model gets about its last answer. With status `correct` it is asked for speed."""

    status: Status
    reason: str = ""
    """One sentence: what was seen."""
    build_log: str = ""
    details: str = ""
    findings: tuple[Finding, ...] = ()
    errors: tuple[ErrorStatistics, ...] = ()
    checks: tuple[Check, ...] = ()
    measurement: Measurement | None = None
    kernels: Kernels | None = None
    """What ran in one traced call of a correct program."""
    analysis: Analysis | None = None
    """The bottleneck of a correct program, and the resources of its kernels."""
    repeated: bool = False
    """Whether an earlier answer of the sample held the same program."""

    @classmethod
    def from_verification(cls, verification: Verification, *, repeated: bool = False) -> Failure:
        """The failure (or slow success) that a verification shows."""
        failed = [build for build in verification.builds if build.state is not BuildState.OK]
        return cls(
            status=verification.status,
            reason=verification.reason,
            build_log="\n".join(dict.fromkeys(build.log for build in failed if build.log)),
            details=verification.details,
            findings=verification.findings,
            errors=verification.errors,
            checks=verification.checks,
            measurement=verification.measurement,
            kernels=verification.kernels if verification.status is Status.CORRECT else None,
            analysis=analyse(verification) if verification.status is Status.CORRECT else None,
            repeated=repeated,
        )

    @classmethod
    def from_extraction(cls, extraction: Extraction) -> Failure:
        """The failure to find a program in a response. Raises ValueError when one was found."""
        if extraction.status is None:
            raise ValueError("the extraction found a candidate; a failure needs its verification")
        return cls(status=extraction.status, reason=extraction.reason or "; ".join(extraction.warnings))


MAX_IDEA = 240
"""Characters of an answer's first sentence that are shown."""


class Shown(FrozenRecord):
    """A correct program that is shown beside the parent."""

    source: str
    measurement: Measurement | None

    @classmethod
    def of(cls, source: str | None, verification: Verification | None) -> Shown:
        """The program of an attempt, with its times."""
        return cls(source=source or "", measurement=verification.measurement if verification else None)


class KnownPlan(FrozenRecord):
    """An earlier plan, and the results of its programs."""

    title: str
    programs: int
    """Answers that carried it out, or went on from such an answer."""
    correct: int
    best: Measurement | None
    """The times of the fastest correct program; None where none was timed."""


class Tried(FrozenRecord):
    """An earlier answer to a question about the same parent."""

    idea: str
    """The answer's words before its code, on one line; empty when there are none."""
    status: Status
    measurement: Measurement | None
    repeated: bool = False
    """Whether its program was an earlier answer's."""

    @classmethod
    def of(cls, response: Response, failure: Failure) -> Tried:
        """An attempt, by its answer and what came of it."""
        return cls(
            idea=_idea(response.text),
            status=failure.status,
            measurement=failure.measurement,
            repeated=failure.repeated,
        )


def _idea(text: str | None) -> str:
    """The first words of an answer, without its thinking and its code."""
    said = without_thinking(text or "").partition("```")[0]
    line = next((line.strip() for line in said.splitlines() if line.strip(" #*-")), "")
    # It stands on a line of its own in a list: nothing in it may look like a fence or a heading.
    return encodable(line.replace("`", "'").lstrip("#*- ")[:MAX_IDEA])


MAX_LINE = 400
"""Characters of a line that are shown."""
MAX_SCANNED = 20_000
"""Characters of a line that are looked at: build commands run to thousands."""
CONTEXT_LINES = 4
REPEATS = 3

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_PLACE = re.compile(r"^(?P<file>[^\s:()][^:()\n]{0,300}?)(?::(?P<line>\d+)(?::\d+)?|\((?P<paren>\d+)\)): ")
_SEVERITY = re.compile(
    r"(?P<kind>(?:fatal |catastrophic )?error|warning|note|remark)(?: #[\w-]+)?\s*:", re.IGNORECASE
)
_DRIVER = r"(?:\S*/)?(?:c\+\+|g\+\+|gcc|cc1plus|clang\+\+|clang|ld|ld\.\w+|nvcc|cicc)(?:-\d+)?"
_PLACELESS_ERROR = re.compile(
    "|".join(
        (
            r"undefined reference to|undefined symbol|multiple definition of|cannot find -l",
            r"^(?:ptxas|nvcc|nvlink) +(?:fatal|error)|^ptxas .{0,300}; (?:fatal|error)",
            rf"^{_DRIVER}: (?:fatal )?error",
            r"No space left on device|virtual memory exhausted|^Killed$",
        )
    )
)
_NOISE = re.compile(
    "|".join(
        (
            r"^\[\d+/\d+\] |^FAILED: |^ninja: |compilation terminated\.$|collect2: error: ld returned",
            r"^In file included from|^ +from \S+:\d+",
            r": In (?:\w+ ){0,3}(?:function|constructor|destructor|substitution|instantiation)\b",
            r": At global scope:|(?:: +|^\s*)(?:recursively )?required (?:from|by)",
            r"^\s+detected (?:during|at)|^\s+instantiation of |instantiation contexts not shown",
            r"^\d+ (?:error|warning)s? (?:detected|generated)|^Remark: ",
        )
    )
)
_COMMAND = re.compile(
    r"^\S*(?:c\+\+|g\+\+|gcc|clang\+\+|nvcc|cicc|ptxas|cudafe\+\+)(?:-\d+)? .*\s-(?:o|c|shared)\b"
)
_REQUIRED_HERE = re.compile(r"\brequired from here$")
_INSTANTIATED_AT = re.compile(r"^\s+(?:detected during )?instantiation of .* at line \d+")


@dataclass
class _Diagnostic:
    """One error of the log, and the lines that belong to it."""

    headline: str
    text: str
    """The headline without its place."""
    origin: str = ""
    """For an error inside a template: the line of the program that instantiated it."""
    context: list[str] = field(default_factory=list)

    def render(self) -> str:
        lines = [self.headline, *self.context, *([self.origin] if self.origin else [])]
        return "\n".join(line[:MAX_LINE] for line in lines)


def trim_log(log: str, max_chars: int) -> str:
    """The errors of a compiler log with file, line and context, in order, in at most `max_chars` characters.

    Understands gcc, clang, nvcc, ptxas, GNU ld and ninja. Build commands, include chains, template
    instantiation traces, notes and warnings are dropped; directories are cut from file names; an error seen
    before is not repeated, and one with the same text is shown for three places at most. A log without a
    recognised error is kept from its end, without the noise.
    """
    lines = [_ANSI.sub("", line).rstrip()[:MAX_SCANNED] for line in log.splitlines()]
    found = _diagnostics(lines)
    if not found:
        return trim_text(
            "\n".join(line[:MAX_LINE] for line in lines if line and not _is_noise(line)), max_chars, head=0.0
        )
    shown, repeated = _without_repeats(found)
    return _fit([diagnostic.render() for diagnostic in shown], repeated, max_chars)


def trim_text(text: str, max_chars: int, *, head: float = 0.25) -> str:
    """`text` in at most `max_chars` characters: a share `head` from its start, the rest from its end."""
    if len(text) <= max_chars:
        return text
    mark = f"\n[... {len(text) - max_chars} or more characters left out ...]\n"
    room = max_chars - len(mark)
    if room <= 0:
        return text[len(text) - max_chars :] if max_chars > 0 else ""
    first = int(room * head)
    return text[:first] + mark + text[len(text) - (room - first) :]


def _is_noise(line: str) -> bool:
    return bool(_NOISE.search(line) or _COMMAND.match(line))


def _diagnostics(lines: list[str]) -> list[_Diagnostic]:
    """Every error of the log with the source lines the compiler printed under it."""
    found: list[_Diagnostic] = []
    current: _Diagnostic | None = None
    origin = ""
    for line in lines:
        if not line or _is_noise(line):
            current = None
            if _REQUIRED_HERE.search(line):  # gcc says it before the error
                origin = _short(line)
            elif found and _INSTANTIATED_AT.search(line):  # nvcc after it, the outermost last
                found[-1].origin = line
            continue
        kind = _kind(line)
        if kind == "error":
            current = _error(line)
            current.origin, origin = origin, ""
            found.append(current)
        elif kind is not None:
            current, origin = None, ""
        elif current is not None and len(current.context) < CONTEXT_LINES:
            current.context.append(line)
    return found


def _kind(line: str) -> str | None:
    """`error`, `other` for warnings and notes, None for a line that is no diagnostic's first."""
    place = _PLACE.match(line)
    severity = _SEVERITY.match(line, place.end()) if place else None
    if severity:
        return "error" if "error" in severity["kind"].lower() else "other"
    return "error" if _PLACELESS_ERROR.search(line) else None


def _error(line: str) -> _Diagnostic:
    place = _PLACE.match(line)
    if place is None:
        return _Diagnostic(line, line)
    return _Diagnostic(_short(line), line[place.end() :])


def _short(line: str) -> str:
    """A line that starts with a place, without the directories."""
    place = _PLACE.match(line)
    return line if place is None else place["file"].rsplit("/", 1)[-1] + line[place.end("file") :]


def _without_repeats(diagnostics: list[_Diagnostic]) -> tuple[list[_Diagnostic], int]:
    """The diagnostics to show, and how many more repeat one of them at another place."""
    headlines: set[str] = set()
    texts: dict[str, int] = {}
    shown: list[_Diagnostic] = []
    repeated = 0
    for diagnostic in diagnostics:
        if diagnostic.headline in headlines:
            continue
        headlines.add(diagnostic.headline)
        texts[diagnostic.text] = texts.get(diagnostic.text, 0) + 1
        if texts[diagnostic.text] > REPEATS:
            repeated += 1
        else:
            shown.append(diagnostic)
    return shown, repeated


def _fit(blocks: list[str], repeated: int, max_chars: int) -> str:
    """As many whole blocks as fit, then a line that says what was left out."""
    tail = f"[{counted(repeated, 'more place')} with the same errors]" if repeated else ""
    whole = "\n".join([*blocks, tail] if tail else blocks)
    if len(whole) <= max_chars:
        return whole
    reserve = len(f"\n[{counted(len(blocks) + repeated, 'more error')} left out]")
    kept: list[str] = []
    used = 0
    for block in blocks:
        if used + len(block) + 1 > max_chars - reserve:
            break
        kept.append(block)
        used += len(block) + 1
    if not kept:
        return trim_text(blocks[0], max_chars, head=1.0)
    return "\n".join([*kept, f"[{counted(len(blocks) + repeated - len(kept), 'more error')} left out]"])
