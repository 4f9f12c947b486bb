"""Whose kernels did the work in one traced call, and whether that is enough: docs/rationale/kernels.md.

The trace is made in the contestant, so it is a claim: `reports` reads it, bounded and validated.

`ReferenceTrace` is one call of the reference, traced as the candidate's is: what libraries do for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from typing import Any

import torch

from kernelproof.backends import backend
from kernelproof.types import Build, BuildState, Kernels, Origin, Status, VerifySettings
from kernelproof.verifier.contestant.between_calls import LOOP_KERNELS
from kernelproof.verifier.contestant.profiling import NO_KERNELS, TRACE_SECONDS, Watched
from kernelproof.verifier.referee.checks.trials import Ask
from kernelproof.verifier.referee.inputs.problem import LoadedProblem, ProblemError
from kernelproof.verifier.referee.ledger import Ledger
from kernelproof.verifier.referee.provenance.origins import Evidence, evidence
from kernelproof.verifier.referee.provenance.replaced import CONVOLUTION, PRODUCT, Replaced, Works, replaced
from kernelproof.verifier.referee.provenance.reports import OWN, Report, read_report
from kernelproof.verifier.status_rules import OWN_COMPUTE, OWN_KERNEL, Cause, Ended
from kernelproof.verifier.workers.client import Contestant, ContestantFailed, ContestantGone
from kernelproof.verifier.workers.shared_memory import SharedSlot
from kernelproof.wording import counted

OWN_FLOOR = 0.01
LIBRARY_CEILING = 0.90
"""Where nothing is known of the reference's work, a decoy kernel is recognised by times: own kernels take
less than the one share of them, libraries more than the other."""
OWN_AT_LEAST = 0.10
"""Where libraries make up for a missing product by another, own kernels with this share of the time are let
pass: they arrange the work for it, as an own Winograd transform does."""

_LIBRARIES = (Origin.LIBRARY, Origin.INDUCTOR, Origin.UNKNOWN)
"""Whose compute is not the candidate's; copies are neither."""

_NAMED = 5
"""Most names in a sentence."""

Reference = Callable[[SharedSlot, list[Any], int], Callable[[], Works | None]]
"""Begins to trace the reference's call on the same inputs, with this seed; the function that it returns waits
for the trace."""


def check_kernels(
    ask: Ask,
    slot: SharedSlot,
    draw: Callable[[int, torch.device], list[Any]],
    ledger: Ledger,
    settings: VerifySettings,
    device: torch.device,
    source: str,
    reference: Reference,
    *,
    again: bool = False,
    timed_next: bool = False,
) -> None:
    """Has one call traced and notes what ran. Raises Ended where the settings ask for more of the candidate's
    own, or its process dies.

    `source`: the candidate's. `again`: this is the second such call of this verification. `timed_next`: calls
    are timed after it.
    """
    after = " again" if again else ""
    arguments = draw(ledger.seed(f"traced{after}"), device)
    slot.fill(arguments)
    seed = ledger.seed(f"forward traced{after}")
    message = {"op": "call", "seed": seed, **slot.message()}
    seconds = settings.call_seconds + TRACE_SECONDS
    shown = _evidence(ledger, settings, source)

    def watched(**how: object) -> Any:
        return ask(message | how, seconds, Cause.RAISED_IN_CALL).get("profile")

    def traced() -> Report:
        try:
            profile = watched(watched="profiled", timed_next=timed_next)
            if device.type == "cpu" and isinstance(profile, dict) and not profile.get("interpreted"):
                more = watched(watched="dispatched")  # where kernels are interpreted it would take long
                profile["dispatched"] = more.get("dispatched") if isinstance(more, dict) else None
        except Ended as ended:
            if ended.status is not Status.RUNTIME_ERROR:
                raise
            why = f"the traced call failed: {ended.reason}"[:500]
            return Report(Kernels(trouble=why, raised=True), None)
        return read_report({"profile": profile}, ledger.builds, shown)

    expected = reference(slot, arguments, seed)
    report = traced()
    if report.kernels.raised:
        # A candidate that raises in this untraced call, too, ends by it.
        ask(message, seconds, Cause.RAISED_IN_CALL)
        report = traced()
    elif report.kernels.trouble == NO_KERNELS:  # once may be chance
        report = traced()
    _check(report, expected(), shown, ledger, settings, again)


def check_timed_kernels(
    looks: Iterable[tuple[dict[str, Any], int, str]],
    works: Works | None,
    ledger: Ledger,
    settings: VerifySettings,
    source: str,
) -> None:
    """The same of `looks` at blocks that the candidate could not tell from those that are timed: the report,
    the number of calls, and what shows that other kernels were timed, if anything. `works`: the reference's.
    """
    shown = _evidence(ledger, settings, source)
    before = {launch.name for launch in ledger.kernels.launches} if ledger.kernels is not None else set()
    besides = set(LOOP_KERNELS) - before  # a kernel of the candidate's may have such a name
    for profile, calls, others in looks:
        report = read_report({"profile": profile}, ledger.builds, shown, calls, besides)
        _check(report, works, shown, ledger, settings, again=True, others=others)


def _evidence(ledger: Ledger, settings: VerifySettings, source: str) -> Evidence:
    first = backend(settings.backend).first_call
    return evidence(ledger.builds, source, first.written_name if first is not None else str)


def _with_shares(kernels: Kernels, replacement: Replaced | None) -> Kernels:
    """The kernels with what they replace of the reference, where that is known."""
    if replacement is None:
        return kernels
    shares = {"replaced_share": replacement.share, "replaced_outside_products": replacement.outside_products}
    return kernels.model_copy(update=shares)


def _check(
    report: Report,
    works: Works | None,
    shown: Evidence,
    ledger: Ledger,
    settings: VerifySettings,
    again: bool,
    others: str = "",
) -> None:
    """Notes what ran. Raises Ended where the settings ask for more of the candidate's own. `works`: the
    reference's. `others`: what shows that other kernels were timed."""
    replacement = replaced(works, report.works) if works is not None and report.works is not None else None
    kernels = _with_shares(report.kernels, replacement)
    if ledger.kernels is None or kernels.launches:  # the later look, where it saw something
        ledger.kernels = kernels
    own_kernel, own_compute = (each.again() if again else each for each in (OWN_KERNEL, OWN_COMPUTE))
    figures = {"own_share": kernels.own_share, "launches": len(kernels.launches)}
    if replacement is not None:
        figures |= {
            "replaced_share": replacement.share,
            "replaced_outside_products": replacement.outside_products,
        }
    if settings.own_kernel:
        why = others or _hides(report, shown)
        why = why or lacking(
            *(kernels, ledger.builds, shown, replacement),
            seen_elsewhere=works is not None and bool(works.kernels),
        )
        if why:
            ledger.kernels = kernels
            raise ledger.failed(own_kernel, why, figures)
        ledger.passed(own_kernel, _summary(kernels, ledger.builds), figures)
    if settings.purity == "own-compute":
        computed = library_compute(kernels)
        if computed or kernels.raised:
            ledger.kernels = kernels
            seen = (
                f"libraries computed too: {_names(computed)}" if computed else f"not seen: {kernels.trouble}"
            )
            raise ledger.failed(own_compute, seen, figures)
        if kernels.trouble and not kernels.launches:
            ledger.skipped(own_compute, kernels.trouble, figures)
        else:
            ledger.passed(own_compute, "no library computed anything", figures)


def _hides(report: Report, shown: Evidence) -> str:
    """How the candidate keeps its operators from being recorded; empty where it does not."""
    # Tried on CPUs only. On a GPU marks may be missing for another reason: there it decides nothing yet.
    if report.interrupted and not torch.cuda.is_available():
        return "it is right, but the record of its call was stopped or switched off while it was called"
    if shown.switches_recording:
        return "it is right, but a library that it built has torch record no operators"
    return ""


def lacking(
    kernels: Kernels,
    builds: Sequence[Build],
    shown: Evidence | None = None,
    replacement: Replaced | None = None,
    *,
    seen_elsewhere: bool = False,
) -> str:
    """Why no kernel of the candidate's own did the work; empty when one did.

    `replacement`: what they replace of the reference's work, where that is known. Without a trace it is
    enough that an extension was built, or that the source compiles kernels in another way, unless the
    reference's kernels are `seen_elsewhere`: in its own process, on the same device.
    """
    built = any(build.state is BuildState.OK for build in builds)
    if kernels.raised:
        return f"it is right, but raises whenever it is traced, and only then: {kernels.trouble}"
    if kernels.trouble and not kernels.launches:
        if seen_elsewhere and kernels.trouble == NO_KERNELS:
            return "it is right, but the profiler sees the reference's kernels here, and none of its own"
        may_have = built or (shown is not None and shown.compiles)
        return "" if may_have else "it is right, but it built no extension"
    own, others = _split(kernels)
    if not own:
        ran = f"; what ran is {_names(others)}" if others else ""
        return f"it is right, but no kernel of its own ran{ran}"
    if replacement is not None:
        return _replaces_nothing(kernels, replacement, own)
    if kernels.own_share is not None and kernels.own_share < OWN_FLOOR:
        total = sum(launch.ms or 0.0 for launch in kernels.launches)
        library = sum(launch.ms or 0.0 for launch in kernels.launches if launch.origin in _LIBRARIES) / total
        if library > LIBRARY_CEILING:
            share = f"{kernels.own_share:.2%} of the time, libraries {library:.0%}"
            return f"its own kernels take {share}: {_names(others)}"
    return ""


def _replaces_nothing(kernels: Kernels, replacement: Replaced, own: list[str]) -> str:
    """Why own kernels that ran did nothing that libraries do for the reference; empty when they did."""
    ran = f"it is right, but its own kernels ({_names(own)}) replace nothing"
    if replacement.nothing:
        return f"{ran}: all that the reference computes ({_names(replacement.still)}) still runs in libraries"
    rearranged = PRODUCT in replacement.gone or CONVOLUTION in replacement.gone
    own_ms = sum(launch.ms or 0.0 for launch in kernels.launches if launch.origin in OWN)
    a_trifle = kernels.own_share is not None and own_ms < OWN_AT_LEAST * replacement.libraries_ms
    kinds = replacement.by_fused if a_trifle else replacement.kinds
    if kinds or (rearranged and (kernels.own_share is None or kernels.own_share >= OWN_AT_LEAST)):
        return ""
    gone = _names(replacement.gone)
    others = [launch.name for launch in kernels.launches if launch.origin not in OWN]
    return f"{ran}: in place of {gone} libraries do other work of the same kind ({_names(others)})"


def library_compute(kernels: Kernels) -> tuple[str, ...]:
    """Operators and kernels of libraries and of torch.compile that computed: no copies, casts, fills. Kernels
    that nothing shows to be the candidate's are among them."""
    return tuple(dict.fromkeys((*kernels.operators, *_split(kernels)[1])))


def _split(kernels: Kernels) -> tuple[list[str], list[str]]:
    """Names of the candidate's own launches, and of those of libraries: each once, though torch may launch a
    kernel that is launched elsewhere too."""
    own, others = (
        list(dict.fromkeys(launch.name for launch in kernels.launches if launch.origin in origins))
        for origins in (OWN, _LIBRARIES)
    )
    return own, others


def _summary(kernels: Kernels, builds: Sequence[Build]) -> str:
    own, _ = _split(kernels)
    if not own:
        return f"not seen ({kernels.trouble}); it built {counted(len(builds), 'extension')}"
    said = _names(own)
    if kernels.own_share is not None:
        said += f", {kernels.own_share:.0%} of the time"
    if kernels.replaced_share is not None:
        said += f", in place of {kernels.replaced_share:.0%} of the reference's time in libraries"
    return said


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


class ReferenceTrace:
    """The work of libraries in the reference's call, traced when it is first asked for.

    Kernels on a GPU are traced in the baseline's process, while the candidate's is traced: CUPTI slows the
    process that it is attached to, and must not stay in the referee. Where there is no baseline, and on a
    CPU, the operators are traced here.
    """

    def __init__(
        self,
        loaded: LoadedProblem,
        model: torch.nn.Module,
        settings: VerifySettings,
        baseline: Callable[[], Contestant] | None,
        requests: Executor,
    ) -> None:
        """`baseline`: the process that is asked in `requests`, one request after the other."""
        self._loaded, self._model, self._settings = loaded, model, settings
        self._baseline, self._requests = baseline, requests
        self.works: Works | None = None
        """Once it was traced."""

    def begin(self, slot: SharedSlot, arguments: list[Any], seed: int) -> Callable[[], Works | None]:
        """Begins to trace a call on these arguments, which the slot holds too. The function that it returns
        waits for the result: None where there is none."""
        if self.works is not None:
            return lambda: self.works
        if self._baseline is not None:
            watched = {"watched": "profiled", "timed_next": True}
            message = {"op": "call", "seed": seed, **watched, **slot.baseline.message()}
            asked = self._requests.submit(self._ask, self._baseline, message)
            return lambda: self._keep(asked.result())
        try:
            with Watched(torch.device("cpu")) as seen:
                self._loaded.run(self._model, arguments, seed)
        except (ProblemError, torch.OutOfMemoryError):  # it ran before; without it less is known
            return lambda: None
        return lambda: self._keep({"profile": seen.report})

    def _ask(self, baseline: Callable[[], Contestant], message: dict[str, Any]) -> dict[str, Any]:
        seconds = self._settings.call_seconds + TRACE_SECONDS
        try:
            return baseline().ask(message, seconds=seconds)
        except (ContestantFailed, ContestantGone):  # the timing against it finds out
            return {}

    def _keep(self, reply: dict[str, Any]) -> Works | None:
        self.works = read_report(reply, (), Evidence()).works
        return self.works
