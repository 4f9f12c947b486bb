"""All that a record holds comes back equal: odd Unicode, infinities, huge seeds, empty fields."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelproof.db.store import Store, open_store
from kernelproof.hashing import sha256_text
from kernelproof.types import (
    Against,
    Build,
    BuildState,
    Candidate,
    Ceilings,
    Check,
    CheckOutcome,
    Determinism,
    Environment,
    ErrorClass,
    ErrorStatistics,
    Extraction,
    Finding,
    Flag,
    GpuInfo,
    Interval,
    Kernels,
    Launch,
    Measurement,
    Origin,
    Pace,
    Prompt,
    Replayed,
    Response,
    Rigor,
    Roofline,
    SandboxReport,
    Severity,
    Status,
    Usage,
    Verification,
    VerifySettings,
)
from kernelproof.workspace import DatabasePlace
from tests.db import samples

FEW = settings(max_examples=40, deadline=None)
SAMPLE_NUMBERS = count()
TEXT = st.text(st.characters(exclude_categories=()), max_size=20)  # lone surrogates and NUL included
SHA = st.text("0123456789abcdef", min_size=64, max_size=64)
MAYBE_TEXT = st.none() | TEXT
NUMBER = st.floats(allow_nan=False)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
COUNT = st.integers(0, 2**63 - 1)
HUGE = st.integers(-(2**70), 2**70)
JSON = st.recursive(
    st.none() | st.booleans() | HUGE | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=3)


def many(of: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(of, max_size=3).map(tuple)


GPUS = st.builds(
    GpuInfo,
    name=TEXT,
    uuid=TEXT,
    capability=TEXT,
    board=MAYBE_TEXT,
    vbios=MAYBE_TEXT,
    power_limit_w=st.none() | FINITE,
)
ENVIRONMENTS = st.builds(
    Environment,
    **dict.fromkeys(("kernelproof", "python", "torch", "platform", "cpu", "host_sha256"), TEXT),
    **dict.fromkeys(("cuda", "driver", "nvcc", "cxx"), MAYBE_TEXT),
    gpu=st.none() | GPUS,
)
BUILDS = st.builds(
    Build,
    **dict.fromkeys(("key", "name", "log"), TEXT),
    state=st.sampled_from(BuildState),
    library=MAYBE_TEXT,
    library_sha256=MAYBE_TEXT,
    cached=st.booleans(),
    duration_s=FINITE,
    commands=many(TEXT),
)
FINDINGS = st.builds(
    Finding,
    **dict.fromkeys(("rule", "message", "evidence"), TEXT),
    severity=st.sampled_from(Severity),
    line=st.none() | COUNT,
    status=st.none() | st.sampled_from(Status),
)
CHECKS = st.builds(
    Check,
    **dict.fromkeys(("name", "asked", "seen"), TEXT),
    outcome=st.sampled_from(CheckOutcome),
    figures=OBJECT,
)
ERRORS = st.builds(
    ErrorStatistics,
    trial=TEXT,
    dtype=TEXT,
    **dict.fromkeys(("max_abs", "max_rel", "relative_norm", "reference_relative_norm"), NUMBER),
    first_bad=st.none() | many(COUNT),
    expected=st.none() | NUMBER,
    got=st.none() | NUMBER,
)
CLOCKS = st.dictionaries(TEXT, st.none() | TEXT | COUNT | FINITE, max_size=3)
SAMPLES = many(many(FINITE))
INTERVALS = st.builds(Interval, low=NUMBER, high=NUMBER)
AGAINST = st.builds(
    Against,
    baseline=TEXT,
    baseline_ms=NUMBER,
    speedup=NUMBER,
    speedup_interval=INTERVALS,
    pace=st.sampled_from(Pace),
    unresolved_because=MAYBE_TEXT,
    measured=TEXT,
)
CEILINGS = st.builds(
    Ceilings,
    **dict.fromkeys(("bytes_per_s", "operations_per_s", "aa_spread"), NUMBER),
    cache_bytes=COUNT,
    measured=TEXT,
)
ROOFLINES = st.builds(
    Roofline,
    ceilings=CEILINGS,
    **{
        name: NUMBER if field.annotation is float else COUNT
        for name, field in Roofline.model_fields.items()
        if name != "ceilings"
    },
)
KERNELS = st.builds(
    Kernels,
    launches=many(
        st.builds(Launch, name=TEXT, origin=st.sampled_from(Origin), count=COUNT, ms=st.none() | NUMBER)
    ),
    operators=many(TEXT),
    own_share=st.none() | st.floats(0, 1),
    trouble=TEXT,
)
SETTINGS = st.builds(
    VerifySettings,
    backend=st.sampled_from(("cuda", "cpp")),
    size=TEXT,
    rigor=st.sampled_from(Rigor),
    target_half_width=st.none() | st.floats(0, 1, exclude_min=True, exclude_max=True),
    numerics=st.sampled_from(("fp32", "tf32")),
    purity=st.sampled_from(("any", "own-compute")),
    baselines=many(st.sampled_from(("compile", "max-autotune"))),
    own_kernel=st.booleans(),
)
MEASUREMENTS = st.builds(
    Measurement,
    baseline=TEXT,
    **dict.fromkeys(
        ("candidate_ms", "baseline_ms", "speedup", "resolution", "aa_spread", "host_ms", "overhead_ms"),
        NUMBER,
    ),
    speedup_interval=INTERVALS,
    pace=st.sampled_from(Pace),
    unresolved_because=MAYBE_TEXT,
    flush_bytes=COUNT,
    slots=COUNT,
    candidate_samples_ms=SAMPLES,
    baseline_samples_ms=SAMPLES,
    order=many(TEXT),
    clocks_before=CLOCKS,
    clocks_after=CLOCKS,
    inside_ms=st.none() | NUMBER,
    unseen_ms=NUMBER,
    sessions=many(COUNT),
    calls=many(COUNT),
    disturbed=many(TEXT),
    launch_bound=st.booleans(),
    replayed=st.none() | st.builds(Replayed, candidate_ms=st.none() | NUMBER, baseline_ms=st.none() | NUMBER),
    against=many(AGAINST),
    roofline=st.none() | ROOFLINES,
)
SANDBOXES = st.builds(
    SandboxReport, tier=TEXT, layers=st.dictionaries(TEXT, TEXT, max_size=3), refusals=many(TEXT)
)


@st.composite
def verifications(draw: st.DrawFn) -> Verification:
    status = draw(st.sampled_from(Status))
    measured = status in (Status.CORRECT, Status.CHEATING)
    return Verification(
        status=status,
        settings=draw(SETTINGS),
        environment=draw(st.none() | ENVIRONMENTS),
        sandbox=draw(st.none() | SANDBOXES),
        findings=draw(many(FINDINGS)),
        builds=draw(many(BUILDS)),
        checks=draw(many(CHECKS)),
        errors=draw(many(ERRORS)),
        measurement=draw(st.none() | MEASUREMENTS) if measured else None,
        seeds=draw(st.dictionaries(TEXT, HUGE, max_size=3)),
        inputs=draw(many(OBJECT)),
        exit=draw(MAYBE_TEXT),
        stage_seconds=draw(st.dictionaries(TEXT, FINITE, max_size=3)),
        error_class=draw(st.none() | st.sampled_from(ErrorClass)),
        determinism=draw(st.none() | st.sampled_from(Determinism)),
        flags=draw(many(st.sampled_from(Flag))),
        kernels=draw(st.none() | KERNELS),
        **{name: draw(TEXT) for name in ("reason", "problem_id", "details", "verifier")},
        **{name: draw(SHA) for name in ("problem_sha256", "candidate_sha256")},
        created="2026-01-01T00:00:00+00:00",
    )


USAGES = st.builds(Usage, **dict.fromkeys(Usage.model_fields, st.none() | COUNT)).filter(
    lambda u: u != Usage()
)
RESPONSES = st.builds(
    Response,
    **dict.fromkeys(("text", "reasoning", "refusal", "finish_reason"), MAYBE_TEXT),
    **dict.fromkeys(("request_id", "served_model", "system_fingerprint"), MAYBE_TEXT),
    usage=st.none() | USAGES,
    latency_s=st.none() | FINITE,
    raw=OBJECT,
)
PROMPTS = st.builds(
    Prompt,
    **dict.fromkeys(("template", "system", "user"), TEXT),
    **dict.fromkeys(("template_sha256", "sha256"), SHA),
    history=many(st.tuples(TEXT, TEXT)),
)
CANDIDATES = TEXT.map(lambda source: Candidate(source=source, sha256=sha256_text(source)))
EXTRACTIONS = st.builds(
    Extraction,
    candidate=st.none() | CANDIDATES,
    status=st.none() | st.sampled_from(Status),
    method=TEXT,
    warnings=many(TEXT),
    span=st.none() | st.tuples(COUNT, COUNT),
)


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.ci)])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    if request.param == "sqlite":
        place: DatabasePlace = tmp_path_factory.mktemp("store") / "attempts.sqlite"
    else:
        postgres = request.getfixturevalue("postgres")
        place = postgres.address(postgres.made())
    with open_store(place) as opened:
        yield opened


@FEW
@given(verification=verifications())
def test_a_verification_comes_back_equal(shared: Store, verification: Verification) -> None:
    attempt = samples.begin(shared, samples.problem(), samples.settings(), next(SAMPLE_NUMBERS))
    number = shared.record_verification(attempt, verification)
    stored = shared.load_attempt(attempt)
    assert stored.verifications[-1].verification == verification
    assert stored.verifications[-1].id == number
    assert stored.alterations == ()


@FEW
@given(response=RESPONSES, prompt=PROMPTS, extraction=EXTRACTIONS)
def test_prompt_response_and_extraction_come_back_equal(
    shared: Store, response: Response, prompt: Prompt, extraction: Extraction
) -> None:
    problem = samples.problem(2)
    shared.add_problem(problem)
    run = shared.begin_run(samples.settings())
    attempt = shared.begin_attempt(run, samples.key(problem, next(SAMPLE_NUMBERS)), prompt)
    shared.record_response(attempt, response)
    shared.record_extraction(attempt, extraction)
    stored = shared.load_attempt(attempt)
    assert (stored.prompt, stored.response, stored.extraction) == (prompt, response, extraction)
    assert stored.problem == problem
    assert stored.alterations == ()


def test_a_text_that_occurs_often_is_stored_once(store: Store, tmp_path: Path) -> None:
    for sample in range(5):
        samples.judge(store, samples.problem(), samples.settings(), sample=sample)
    size = store.path.stat().st_size
    big = samples.problem(3, source="x = 1\n" * 100_000)
    store.add_problem(big)
    for sample in range(5):
        attempt = samples.begin(store, big, samples.settings(), sample)
        store.record_extraction(attempt, samples.extraction(big.source))
    store.close()
    assert store.path.stat().st_size - size < 2 * len(big.source)
