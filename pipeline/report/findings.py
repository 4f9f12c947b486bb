"""What a measured speedup says, in words: `1.23× [1.18, 1.33] faster`, or why nothing is sure.

Plain text without markup, for screens, pages and tables alike. A speedup is a finding where its pace is
`faster`, `slower` or `same`; what is `unresolved` is noise, and says so.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterable

from kernelproof.report.layout import Ends
from kernelproof.types import Against, Measurement, Pace, Status, Verification

SEPARATOR = " · "
BOUNDED = "bounded by the referee's clock"
"""Said of a speedup that equals the lower end of its interval."""
GIST = 110
HOLDS_1 = "may be either: holds 1"
_NUMBER = r"([\d.e+-]+|inf|nan) %"
_SHORTER = (
    (re.compile(r"baseline's blocks fall into two groups"), "unsteady: the baseline has two speeds"),
    (re.compile(r"baseline was much slower beside it"), "busy machine: it slowed the baseline"),
    (re.compile(rf"half of its interval is {_NUMBER} wide"), "too wide: ±{0} %"),
    (re.compile(r"too few rounds"), "too few rounds"),
    (re.compile(rf"no difference below {_NUMBER} is claimed"), "within the noise of ±{0} %"),
    (re.compile(r"interval holds 1"), HOLDS_1),
)
"""What `unresolved_because` may say, and a short form of it; causes come first."""


def finding(speedup: float, interval: Ends, pace: Pace | str, because: str | None = None) -> str:
    """`1.23× [1.18, 1.33] faster`, or `0.93× [0.93, 1.01] unresolved (may be either: holds 1)`.

    `interval`: 95 %, of the speedup. `because`: why the pace is unresolved, as it is stored.
    """
    said = f"{times(speedup, interval)} {pace}"
    why = why_unresolved(interval, pace, because)
    return f"{said} ({why})" if why else said


def finding_of(measured: Measurement | Against) -> str:
    """The same of a stored measurement."""
    return finding(measured.speedup, measured.speedup_interval, measured.pace, measured.unresolved_because)


def times(speedup: float | None, interval: Ends | None = None) -> str:
    """`1.23× [1.18, 1.33]`: all with the digits that the lower end needs; `-` for None."""
    return " ".join(filter(None, speedup_and_interval(speedup, interval)))


def speedup_and_interval(speedup: float | None, interval: Ends | None) -> tuple[str, str]:
    """The same as two texts; the second is empty without an interval."""
    if speedup is None:
        return "-", ""
    digits = digits_for(speedup if interval is None else min(speedup, interval.low))
    within = "" if interval is None else f"[{interval.low:.{digits}f}, {interval.high:.{digits}f}]"
    return f"{speedup:.{digits}f}×", within


def digits_for(speedup: float) -> int:
    """Decimals: two, fewer from 10 on, more below 0.1, so that two digits say something."""
    if not math.isfinite(speedup) or speedup >= 100:
        return 0
    if speedup >= 10:
        return 1
    return max(2, 1 - math.floor(math.log10(speedup))) if speedup > 0 else 2


def why_unresolved(interval: Ends, pace: Pace | str, because: str | None = None) -> str:
    """Why the pace is unresolved, in a few words for a row; empty where it is resolved.

    `because`: as it is stored; None in old records, and where a table has no room for it.
    """
    if pace != Pace.UNRESOLVED:
        return ""
    for pattern, words in _SHORTER:
        if because and (match := pattern.search(because)):
            return words.format(*match.groups())
    if because:
        return because
    return HOLDS_1 if interval.low <= 1 <= interval.high else "the times vary too much"


def bounded(speedup: float, interval: Ends) -> bool:
    """Whether the speedup is the most that the referee's own clock supports: then it equals the interval's
    lower end, and the candidate's own clock shows more."""
    return math.isclose(speedup, interval.low, rel_tol=1e-9)


def bound_words(m: Measurement) -> str:
    """What bounded the speedup, with both times; empty where nothing did."""
    if not bounded(m.speedup, m.speedup_interval):
        return ""
    if m.inside_ms is None:
        return f"{BOUNDED}, which surely shows no more"
    return f"{BOUNDED}: it surely shows no more, while the candidate's own says {milliseconds(m.inside_ms)}"


def score_words(interval: Ends, pace: Pace | str) -> str:
    """The score, and how far noise lowered it: `1.18, the interval's lower end`.

    The score is what ranks, what fast_p counts and what a trainer gets: `Measurement.claimed`.
    """
    low = interval.low
    if pace == Pace.UNRESOLVED and low > 1:
        return f"1, not {low:.{digits_for(low)}f}: an unresolved speedup counts as 1 at most"
    said = f"{low:.{digits_for(low)}f}, the interval's lower end"
    return f"{said}, which noise may have lowered" if pace == Pace.UNRESOLVED else said


def lowered(speedup: float, pace: Pace | str) -> str:
    """`counts as 1` beside a speedup that is unresolved and above 1; empty for all others."""
    return "counts as 1" if pace == Pace.UNRESOLVED and speedup > 1 else ""


NOT_TIMED, NOT_SOLVED = "not timed", "not solved"
"""Of a problem without a pace: it has a correct kernel, or none."""


def tally(results: Iterable[str]) -> str:
    """Paces, and what has none: `6 faster · 2 slower · 2 unresolved · 1 not solved`; empty for none."""
    counts = Counter(map(str, results))
    return SEPARATOR.join(f"{counts[word]} {word}" for word in (*Pace, NOT_TIMED, NOT_SOLVED) if counts[word])


def gain_words(
    ratio: float, interval: Ends, noise: float, *, shown: bool, other: str = "the original"
) -> str:
    """One kernel against another: `1.42× [1.31, 1.54] as fast as the original`, or why it may be noise.

    `noise`: the ratio that the measurements' resolution allows by chance. `shown`: whether the gain counts.
    """
    said = times(ratio, interval)
    if shown:
        return f"{said} as fast as {other}"
    if ratio <= 1:
        return f"{said} as fast as {other}: no gain was measured"
    if interval.low <= 1:
        return f"{said} as fast as {other} may be noise: the interval holds 1"
    return (
        f"{said} as fast as {other} may be noise: on this machine, today, equal kernels may come out "
        f"{times(noise)} apart"
    )


def milliseconds(ms: float) -> str:
    """`0.580 ms`: three significant digits."""
    return f"{f'{ms:#.3g}'.rstrip('.')} ms" if 1e-4 <= ms < 999.5 else f"{ms:,.3g} ms"


def against(candidate_ms: float, baseline_ms: float) -> str:
    """`0.580 ms against 0.720 ms`: one call of the candidate, and one of what it was measured against."""
    return f"{milliseconds(candidate_ms)} against {milliseconds(baseline_ms)}"


def headline(
    status: Status | None, verification: Verification | None, reason: str = "", attempt: int | None = None
) -> str:
    """All in a line: `correct · 1.23× [1.18, 1.33] faster · 0.580 ms against 0.720 ms · attempt 1`.

    Of a failure, the first clause of its reason: `wrong_output · values: drawn: output 0: 12 of 64 elements
    wrong · attempt 3`.
    `reason`: why there is no verification. `status`: None while the attempt is in progress.
    """
    parts = [str(status) if status is not None else "in progress"]
    if verification is None or status is not Status.CORRECT:
        parts.append(gist(verification.reason if verification is not None else reason))
    elif verification.measurement is None:
        parts.append("not timed")
    else:
        m = verification.measurement
        parts += [finding_of(m), against(m.candidate_ms, m.baseline_ms)]
    parts.append("" if attempt is None else f"attempt {attempt}")
    return SEPARATOR.join(filter(None, parts))


def gist(reason: str) -> str:
    """The first clause of a reason, at most GIST characters."""
    first = re.split(r"[;\n]|, first at |, where |, \d+ of them |(?<=[a-z)])\. ", reason, maxsplit=1)[0]
    return textwrap.shorten(first.rstrip(" ."), GIST, placeholder=" …")
