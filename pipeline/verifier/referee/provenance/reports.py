"""What a contestant says of a traced call, read: bounded, validated, and attributed.

The report is the candidate's own, so nothing in it is believed to be of any form.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kernelproof.types import Build, BuildState, Kernels, Launch, Origin
from kernelproof.verifier.contestant.profiling import (
    BY_TORCH,
    LIBRARY_NAMESPACES,
    MAX_ENTRIES,
    MAX_KERNELS,
    MAX_NAME,
    MAX_TEXT,
    allocation,
)
from kernelproof.verifier.referee.ledger import clean
from kernelproof.verifier.referee.provenance.origins import (
    Evidence,
    author,
    holds_kernel,
    of_library,
    origin,
)
from kernelproof.verifier.referee.provenance.replaced import Operator, Works, unrecorded, works

MOST_LOOKUPS = 16
"""Names of a report that are looked for in the libraries' files, a second each at most."""

SHAPE = ("threads", "blocks", "registers", "shared_bytes")
OWN = (Origin.OWN, Origin.JIT)
"""What counts as the candidate's."""


class Malformed(ValueError):
    """The contestant's report is not one."""


class Report(NamedTuple):
    """What ran, and what libraries did of it; None where there is no trace."""

    kernels: Kernels
    works: Works | None
    interrupted: bool = False
    """Whether the record was stopped, or told to look away, while the call was made."""


class _Row(NamedTuple):
    kind: str
    name: str
    calls: int
    ms: float


def read_report(
    reply: dict[str, Any],
    builds: Sequence[Build],
    shown: Evidence,
    calls: int = 1,
    besides: Collection[str] = (),
) -> Report:
    """What a contestant's reply to a watched call comes to. Nonsense in it becomes `trouble`, never an error.

    `shown`: what shows that a kernel is the candidate's. `calls`: how many the report is of; what comes back
    is of one of them. `besides`: kernels of the loop around them.
    """
    try:
        return _read(reply.get("profile"), builds, shown, calls, besides)
    except Malformed as error:
        return Report(Kernels(trouble=f"the report is malformed: {error}"), None)


def _read(
    report: object, builds: Sequence[Build], shown: Evidence, calls: int, besides: Collection[str]
) -> Report:
    if not isinstance(report, dict):
        raise Malformed("no object")
    trouble = report.get("trouble")
    if not isinstance(trouble, str):
        raise Malformed("trouble is no text")
    modules = {build.name for build in builds if build.state is BuildState.OK}
    rows = _rows(report.get("host"), calls)
    elements = _elements(report.get("elements"), calls)
    on_host = _with_elements(_of_libraries(rows), elements)
    hidden = unrecorded(on_host, _dispatched(report.get("dispatched"), calls))
    rows += [_Row(line.kind, line.name, line.calls, line.ms) for line in hidden]
    host = list(_host(rows, modules, shown.images))
    kernels: list[tuple[Launch, bool]] = []
    others = _written_by_others(report.get("made"), shown)
    if "device" in report:
        ran = [row for row in _rows(report["device"], calls) if row.name not in besides]
        kernels = _device(ran, shown, others, _shapes(report.get("shapes")))
        launches = [launch for launch, _ in kernels]
    else:
        launches = host + _interpreted(report.get("interpreted"), shown, others, calls)
        if not any(launch.origin is Origin.OWN for launch in host):
            launches += [
                Launch(name=f"{name} (code)", origin=Origin.OWN, count=1) for name in _code(report, modules)
            ]
    said = Kernels(
        launches=tuple(launches[:MAX_ENTRIES]),
        operators=tuple(launch.name for launch in host if launch.origin is Origin.LIBRARY),
        own_share=_own_share(launches),
        allocations=_allocations(report.get("allocations"), calls),
        trouble=clean(trouble)[:1000],
    )
    interrupted = report.get("interrupted") is True
    if trouble and not launches:
        return Report(said, None, interrupted)
    spent = report.get("spent")
    on_device = _with_elements(_rows(spent, calls), elements) if spent is not None else None
    return Report(said, works([*on_host, *hidden], on_device, kernels), interrupted)


def _lines(value: object, what: str, most: int = MAX_ENTRIES) -> list[Any]:
    """The lines of a list in the report; none for None. Raises Malformed."""
    if not isinstance(value, list | None) or len(value or ()) > most:
        raise Malformed(f"{what} is none, or too long")
    return value or []


def _with_elements(rows: Iterable[_Row], elements: Mapping[tuple[str, str], int]) -> list[Operator]:
    return [Operator(*row, elements.get((row.kind, row.name), 0)) for row in rows]


def _of_each(count: int, calls: int) -> int:
    return max(round(count / calls), 1)


def _dispatched(value: object, calls: int) -> list[Operator]:
    """Operators of libraries as a dispatch mode saw them. Raises Malformed."""
    found = []
    for item in _lines(value, "the list of operators that were dispatched"):
        match item:
            case [name, count, ms, int(elements)] if type(elements) is int and 0 <= elements < 1 << 60:
                found.append(Operator(*_row(["operator", name, count, ms], calls), elements // calls))
            case _:
                raise Malformed("a line of the operators that were dispatched is none")
    return found


def _of_libraries(rows: Iterable[_Row]) -> list[_Row]:
    return [row for row in rows if row.name.partition(".")[0] in LIBRARY_NAMESPACES]


def _device(
    rows: Iterable[_Row], shown: Evidence, others: Mapping[str, Origin], shapes: Mapping[str, dict[str, int]]
) -> list[tuple[Launch, bool]]:
    """Kernels, and whether an operator of torch launched them. `others`: as `_written_by_others` gives it."""
    launches: list[Launch] = []
    by_torch: list[bool] = []
    for kind, name, count, ms in rows:
        by_torch.append(kind == BY_TORCH)
        whose = origin(name, shown, by_torch=by_torch[-1])
        if whose is Origin.JIT:
            whose = others.get(name, whose)
        launches.append(Launch(name=name, origin=whose, count=count, ms=ms, **shapes.get(name, {})))
    return list(zip(_looked_up(launches), by_torch, strict=True))


def _rows(value: object, calls: int) -> list[_Row]:
    """[kind, name, count, milliseconds]. Raises Malformed."""
    return [_row(item, calls) for item in _lines(value, "a list of what ran")]


def _row(item: object, calls: int) -> _Row:
    match item:
        case [str(kind), str(name), int(count), int() | float() as ms] if not isinstance(count, bool):
            if 0 < len(name) <= MAX_NAME and 0 < count < 1 << 40 and 0 <= ms < 1e12:
                return _Row(kind, clean(name), _of_each(count, calls), ms / calls)
    raise Malformed("a line of what ran is none")


def _shapes(value: object) -> dict[str, dict[str, int]]:
    """What each kernel's longest launch took, by its name. Raises Malformed."""
    found: dict[str, dict[str, int]] = {}
    for item in _lines(value, "the list of launches"):
        match item:
            case [str(name), *numbers] if len(name) <= MAX_NAME and len(numbers) == len(SHAPE):
                if all(type(number) is int and 0 <= number < 1 << 40 for number in numbers):
                    found[clean(name)] = dict(zip(SHAPE, numbers, strict=True))
                    continue
        raise Malformed("a line of the launches is none")
    return found


def _allocations(value: object, calls: int) -> dict[str, int]:
    """Names of functions and how often each was called. Raises Malformed."""
    found: dict[str, int] = {}
    for item in _lines(value, "the list of allocations"):
        match item:
            case [str(name), int(count)] if allocation(name) == (name,) and 0 < count < 1 << 40:
                if not isinstance(count, bool) and len(name) <= MAX_NAME:
                    found[name] = _of_each(count, calls)
                    continue
        raise Malformed("a line of the allocations is none")
    return found


def _elements(value: object, calls: int) -> dict[tuple[str, str], int]:
    """Of the tensors that operators were given, by kind and name. Raises Malformed."""
    found: dict[tuple[str, str], int] = {}
    for item in _lines(value, "the list of sizes"):
        match item:
            case [str(kind), str(name), int(count)] if not isinstance(count, bool) and 0 <= count < 1 << 60:
                found[kind, clean(name)] = count // calls
            case _:
                raise Malformed("a line of the sizes is none")
    return found


def _host(rows: Iterable[_Row], modules: set[str], images: Sequence[bytes]) -> Iterator[Launch]:
    """Calls on the host. Functions of modules that were not built and operators made in Python are left out;
    functions that those call have lines of their own."""
    for kind, name, count, ms in rows:
        first = name.partition(".")[0]
        library = first in LIBRARY_NAMESPACES
        if kind == "copy" and library:
            yield Launch(name=name, origin=Origin.COPY, count=count, ms=ms)
        elif kind == "operator" and library:
            yield Launch(name=name, origin=Origin.LIBRARY, count=count, ms=ms)
        elif (kind == "function" and first in modules) or (
            kind == "operator" and any(first.encode() in image for image in images)
        ):
            yield Launch(name=name, origin=Origin.OWN, count=count, ms=ms)


def _interpreted(value: object, shown: Evidence, others: Mapping[str, Origin], calls: int) -> list[Launch]:
    """Kernels that were interpreted, without times. Raises Malformed."""
    found = []
    for item in _lines(value, "the list of kernels that were interpreted"):
        match item:
            case [str(name), int(count)] if 0 < len(name) <= MAX_NAME and 0 < count < 1 << 40:
                name = clean(name)
                whose = others.get(name, origin(name, shown))
                found.append(Launch(name=name, origin=whose, count=_of_each(count, calls)))
            case _:
                raise Malformed("a line of the kernels that were interpreted is none")
    return found


def _written_by_others(value: object, shown: Evidence) -> dict[str, Origin]:
    """Whose a kernel is, by its name, where the file that it was written in is not the candidate's, or no
    line of its text is. A name that two have is no evidence for the candidate. Raises
    Malformed."""
    found: dict[str, Origin] = {}
    for item in _lines(value, "the list of kernels' files", MAX_KERNELS):
        match item:
            case [str(name), str(file), *texts] if len(name) <= MAX_NAME and len(file) <= MAX_NAME:
                if len(texts) > 1 or not all(isinstance(t, str) and len(t) <= MAX_TEXT for t in texts):
                    raise Malformed("a kernel's text is none, or too long")
                whose = author(file)
                if whose is None and not all(map(shown.holds_lines_of, texts)):
                    whose = Origin.UNKNOWN
                if whose is not None and found.get(clean(name), Origin.UNKNOWN) is Origin.UNKNOWN:
                    found[clean(name)] = whose
            case _:
                raise Malformed("a line of the kernels' files is none")
    return found


def _code(report: dict[str, Any], modules: set[str]) -> list[str]:
    """Modules whose code ran, as the report says."""
    said = report.get("code", [])
    if not isinstance(said, list) or len(said) > MAX_ENTRIES:
        raise Malformed("the list of modules is none")
    return [name for name in said if isinstance(name, str) and name in modules]


def _looked_up(launches: list[Launch]) -> list[Launch]:
    """The same; those that nothing else explains as a library's where one holds them, of the longest."""
    unknown = sorted(
        (n for n, launch in enumerate(launches) if launch.origin is Origin.UNKNOWN),
        key=lambda n: -(launches[n].ms or 0.0),
    )
    for n in unknown[:MOST_LOOKUPS]:
        if holds_kernel(launches[n].name):
            launches[n] = launches[n].model_copy(update={"origin": of_library(launches[n].name)})
    return launches


def _own_share(launches: Sequence[Launch]) -> float | None:
    times = [launch.ms for launch in launches if launch.ms is not None]
    total = sum(times)
    if len(times) < len(launches) or total <= 0:
        return None
    own = sum(launch.ms or 0.0 for launch in launches if launch.origin in OWN)
    return min(own / total, 1.0)
