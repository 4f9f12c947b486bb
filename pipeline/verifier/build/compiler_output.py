"""What compilers print, made fit to store (no scratch paths, no random names, bounded) and summed up in one
sentence.

The sentence is the first error that matters, with what the installed torch has in place of what it dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from kernelproof.types.build import Build, BuildState
from kernelproof.verifier.status_rules import BUILD_CAUSES, Ended

MAX_LOG_CHARS = 200_000
_TAIL_CHARS = 40_000

_VARYING = (
    (re.compile(r"\btmpxft_[0-9a-f]+_[0-9a-f]+-\d+_"), "tmpxft_"),  # nvcc
    (re.compile(r"\bcc[A-Za-z0-9]{6}\.(?=(?:o|s|ii|i|res|cdtor|ltrans)\b)"), "cc."),  # gcc
    (re.compile(r" >\.step\d+ 2>&1; s=.*"), ""),
    (re.compile(r"^ptxas info\s*: Compile time = .*\n?", re.MULTILINE), ""),
)
"""What differs from run to run or is ours, each with what stands for it."""
_KILLED = re.compile(
    r"^(?:\S*: fatal error: (?:Killed|Terminated) signal terminated program \S+"
    r"|collect2: fatal error: \S+ terminated with signal (?:9|15) .*"
    r"|nvcc error +: '\S+' died due to signal (?:9|15)\b.*"
    r"|\S+: error: unable to execute command: (?:Killed|Terminated)"
    r"|step \d+: ended by signal (?:9|15)"
    r"|FAILED: \[code=(?:137|143)\].*)$",
    re.MULTILINE,
)
_FAILED = re.compile(r"^FAILED: (?:\[code=\d+\] )?(\S+)", re.MULTILINE)
_ERROR = re.compile(r"\berror\b(?!\S*/)")
"""Not in the path of a command."""


def clean_log(text: str, scratch: Path) -> str:
    """`text`, which holds no control characters (the sandbox removes them), the same from run to run.

    Paths below `scratch` become relative. The compilers' temporary names lose their random part, and their
    times are left out. Over MAX_LOG_CHARS the middle is left out: the first errors matter most, the last
    lines say how it ended.
    """
    text = text.replace(f"{scratch}/", "").replace(str(scratch), ".")
    for pattern, replacement in _VARYING:
        text = pattern.sub(replacement, text)
    return shorten(text)


def killed(log: str) -> str:
    """The line that says that a compiler was killed; or nothing. Sources can have a compiler write one."""
    found = _KILLED.search(log)
    return found[0] if found is not None else ""


def failures(log: str) -> set[str]:
    """The outputs that ninja could not have made."""
    return set(_FAILED.findall(log))


def first_error(log: str) -> str:
    """The first line of a log that says `error`, bounded; else its first line."""
    lines = [line for line in log.splitlines() if line.strip()]
    return next((line for line in lines if _ERROR.search(line)), lines[0] if lines else "")[:500]


def shorten(text: str, limit: int = MAX_LOG_CHARS) -> str:
    """At most `limit` characters, the middle replaced by a line that says how much is missing."""
    if len(text) <= limit:
        return text
    tail = min(_TAIL_CHARS, limit // 4)
    head = limit - tail - 80
    return f"{text[:head]}\n[... {len(text) - head - tail} characters left out ...]\n{text[-tail:]}"


MAX_CHARS = 400
MAX_QUOTED = 120
"""Of an error that is quoted."""
MAX_DETAILS = 20_000

_ERROR_LINE = re.compile(
    r"^(?P<file>[^\s:(][^:(]*)(?::\d+){0,2}(?:\(\d+\))?: (?:fatal |catastrophic )?error\b"
)
_LINKER = re.compile(r"undefined reference to|multiple definition of|cannot find -l|undefined symbol")
_DRIVER = re.compile(r"^(?:\S*/)?(?:nvcc|ptxas|nvlink|cicc|ld|collect2|c\+\+|g\+\+)\b.*?\b(?:fatal|error)\b")
_COMMAND = re.compile(r"^(?:\[\d+/\d+\] |FAILED: |ninja: )|^\S*/(?:c\+\+|g\+\+|nvcc)\S* .* -(?:c|shared) ")
_OWN = re.compile(r"^(?:main\.cpp|cuda\.cu|own/)")
_FOLDER = re.compile(r"^\S*/(?=[^/\s:(]+[:(])")


_BY_NVCC = re.compile(r"^\S+\.cu\(\d+\): error: ", re.MULTILINE)


def complaint(log: str) -> str:
    """The first error of a log, in one line: of the candidate's own files where there is one, else of any."""
    lines = [line.strip() for line in _plain(log).splitlines() if line.strip() and not _COMMAND.match(line)]
    errors = [line for line in lines if _ERROR_LINE.match(line)]
    own = [line for line in errors if _OWN.match(line)]
    linked = [line for line in lines if _LINKER.search(line) or _DRIVER.match(line)]
    found = next(iter((*own, *errors, *linked, *lines)), "the compilers said nothing")
    return _FOLDER.sub("", found)[:MAX_CHARS]


def _undeclared(match: re.Match[str]) -> str:
    name = match["name"]
    return f"`functions` names {name!r}, which `cpp_sources` does not declare: add its declaration there"


Hint = str | Callable[[re.Match[str]], str]
_HINTS: tuple[tuple[re.Pattern[str], Hint], ...] = (
    (
        re.compile(r"'(?P<name>\w+)' was not declared in this scope[^\n]*\n[^\n]*m\.def\(\"(?P=name)\""),
        _undeclared,
    ),
    (
        re.compile(r"DeprecatedTypeProperties"),
        "dispatch macros take `x.scalar_type()`; the installed torch does not take `x.type()` there",
    ),
    (
        re.compile(r"has no member \"data\"|has no member named 'data'"),
        "the installed torch has `x.data_ptr<T>()`, and no `x.data<T>()`",
    ),
    (
        re.compile(r"\bTHC/\S+: No such file"),
        "the installed torch has no THC; what it offered is in <ATen/cuda/CUDAContext.h> and <c10/cuda/...>",
    ),
    (
        re.compile(r"\bTHC?(?:State|udaCheck|Ceil\w*|Atomic\w*)\b"),
        "the installed torch has no THC; use C10_CUDA_CHECK and c10::cuda::getCurrentCUDAStream()",
    ),
    (
        re.compile(r"\bAT_CHECK\b"),
        "the installed torch has `TORCH_CHECK`, and no `AT_CHECK`",
    ),
    (
        re.compile(r"\bAT_ERROR\b.*(?:undefined|not declared)"),
        "the installed torch has `TORCH_CHECK(false, ...)`, and no `AT_ERROR`",
    ),
    (
        re.compile(r"at::cuda.{0,30}has no member \"getCurrentCUDAStream\""),
        "include <ATen/cuda/CUDAContext.h>",
    ),
)


def hint(log: str) -> str:
    """What to write instead, where an error is about something that torch dropped; else nothing."""
    for pattern, said in _HINTS:
        match = pattern.search(_plain(log))
        if match is not None:
            return said if isinstance(said, str) else said(match)
    return ""


def why(builds: Sequence[Build]) -> str:
    """Why an extension is not there, in one sentence. `builds`: those that failed, one at least, the one that
    matters first; those with the same log count as one."""
    first = builds[0]
    if first.state is BuildState.UNAVAILABLE:
        return first.log
    alike = sum((build.state, build.log) == (first.state, first.log) for build in builds)
    others = len({(build.state, build.log) for build in builds}) - 1
    times = f" (asked for {alike} times)" if alike > 1 else ""
    more = f"; {others} more did not compile" if others else ""
    if first.state is BuildState.TIMEOUT:
        return f"your extension did not compile within its limits{times}: {_first_line(first.log)}{more}"
    if first.state is not BuildState.ERROR:
        return f"building {first.name} failed on our side{times}: {_first_line(first.log)}{more}"
    instead = hint(first.log)
    advice = f" ({instead})" if instead else ""
    return f"your extension did not compile{times}: {complaint(first.log)}{advice}{more}"


def refusal(kind: str, message: str) -> str:
    """Why a kernel that is compiled at its first call is not there, in one sentence.

    Triton quotes the program, points at a line with a caret, and says below what is wrong, or nothing. Others
    run nvcc, or say it in their last line.
    """
    if _BY_NVCC.search(message):
        return f"a kernel did not compile: {complaint(message)}"[:MAX_CHARS]
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    caret = max((number for number, line in enumerate(lines) if line == "^"), default=0)
    if not caret:
        return f"a kernel did not compile: {kind}: {lines[-1] if lines else 'it said nothing'}"[:MAX_CHARS]
    said = f": {lines[caret + 1]}" if caret + 1 < len(lines) else ""
    return f"a kernel did not compile: {kind} at `{_shortened(lines[caret - 1])}`{said}"[:MAX_CHARS]


def ended_by_builds(failed: Sequence[Build]) -> Ended | None:
    """How an attempt ends because these builds failed, the first of which decides; None without any."""
    if not failed:
        return None
    return BUILD_CAUSES[failed[0].state].ended(why(failed), failed[0].log[-MAX_DETAILS:])


def _first_line(log: str) -> str:
    return next((line for line in log.splitlines() if line.strip()), "no message")[:MAX_CHARS]


def _shortened(code: str) -> str:
    return code if len(code) <= MAX_QUOTED else f"{code[:MAX_QUOTED]}..."


def _plain(log: str) -> str:
    """With the quotes that compilers write without a locale."""
    return log.replace("\u2018", "'").replace("\u2019", "'")
