"""The tables. Each column's comment is its documentation, which `kernelproof.db.documentation` prints.

Long texts live once in `texts`, under their SHA-256. Rows that hold evidence (responses, verifications,
checks, measurements ...) are only ever added: triggers in the first migration refuse to change them.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from kernelproof.db.base import Base
from kernelproof.db.columns import (
    count,
    created_at,
    json,
    number,
    position_key,
    row_id,
    symbol,
    text_key,
    truth,
    verification_key,
    words,
)
from kernelproof.db.types import SHA256

APPEND_ONLY = (
    *("responses", "verifications", "builds", "findings", "checks", "measurements"),
    *("retractions", "reported_results", "hash_chain", "audits"),
)
"""Tables whose rows triggers protect from UPDATE and DELETE."""

NUMERICS = "`fp32` or `tf32`: the arithmetic that float32 problems may use, on both sides."
PURITY = "`any` or `own-compute`: whether compute operators of libraries are accepted."
OWN_KERNEL = "False when no kernel of the candidate's own was required."


class Text(Base):
    """Every long text, once: prompts, raw responses, sources, build logs, process output."""

    __tablename__ = "texts"

    sha256: Mapped[str] = mapped_column(
        SHA256, primary_key=True, comment="SHA-256 of the body's UTF-8 bytes."
    )
    body: Mapped[str] = words("The text; a BLOB where it is not valid Unicode.")
    bytes: Mapped[int] = count("Length of the body in UTF-8 bytes.")


class Problem(Base):
    """Reference architectures. An edited file is another row: its results are never compared with the old."""

    __tablename__ = "problems"
    __table_args__ = (UniqueConstraint("problem_id", "sha256"),)

    id: Mapped[int] = row_id()
    problem_id: Mapped[str] = words("`level1/23`: what people call it.")
    suite: Mapped[str] = words("`kernelproof`, the suite folder's name, or `file`.")
    level: Mapped[int | None] = count("N of a folder named `levelN`; NULL elsewhere.")
    name: Mapped[str] = words("The file's stem without its number.")
    sha256: Mapped[str] = text_key("SHA-256 of the reference's source.")
    sizes: Mapped[dict[str, Any]] = json("Named size presets.")
    signature: Mapped[dict[str, Any]] = json("Parameter names of the constructor and of forward.")
    summary: Mapped[str] = words("First line of its docstring.")


class Environment(Base):
    """Machines as verifications found them; one row for each distinct set of facts."""

    __tablename__ = "environments"

    id: Mapped[int] = row_id()
    fingerprint: Mapped[str] = mapped_column(
        SHA256, unique=True, comment="SHA-256 of `facts` in canonical form."
    )
    device_name: Mapped[str] = words("The GPU's name, else the CPU's: what the leaderboard groups by.")
    gpu_name: Mapped[str | None] = words("GPU model; NULL on a CPU.")
    gpu_uuid: Mapped[str | None] = words("The very GPU.")
    driver: Mapped[str | None] = words("NVIDIA driver version.")
    cuda: Mapped[str | None] = words("CUDA version torch was built with.")
    torch: Mapped[str] = words("torch version.")
    python: Mapped[str] = words("Python version.")
    nvcc: Mapped[str | None] = words("nvcc version.")
    cxx: Mapped[str | None] = words("First line of `c++ --version`.")
    cpu: Mapped[str] = words("Processor model.")
    host_sha256: Mapped[str] = words("Tells machines apart without naming them.")
    kernelproof: Mapped[str] = words("kernelproof's version.")
    facts: Mapped[dict[str, Any]] = json(
        "Everything known, VBIOS, ECC, MIG, power limit and clocks included."
    )


class Run(Base):
    """One batch with its settings. The same settings are the same run."""

    __tablename__ = "runs"

    id: Mapped[int] = row_id()
    key: Mapped[str] = mapped_column(SHA256, unique=True, comment="SHA-256 of `settings` in canonical form.")
    name: Mapped[str | None] = words("The user's label.")
    kind: Mapped[str] = symbol(
        "`generate`, `verify` for candidates given as files, `import` for published ones, or `tune` for what "
        "a tuner tried."
    )
    model: Mapped[str] = words("`openai:MODEL`, `replay:FILE`, `file`, `tune`, or the label of an import.")
    base_url: Mapped[str | None] = words("The model server's address, when one was set.")
    template: Mapped[str | None] = words("Prompt template with its version.")
    template_sha256: Mapped[str | None] = mapped_column(SHA256, comment="Hash of the template's files.")
    backend: Mapped[str] = symbol("The backend's name: `cuda`, `cpp` or another.")
    size: Mapped[str] = words("Size preset.")
    numerics: Mapped[str] = symbol(NUMERICS)
    purity: Mapped[str] = symbol(PURITY)
    own_kernel: Mapped[bool] = truth(OWN_KERNEL)
    turns: Mapped[int] = count("Most turns of a sample.")
    strategy: Mapped[str | None] = words("The search strategy of a sample; NULL where nothing was asked.")
    settings: Mapped[dict[str, Any]] = json("All settings, the sampling settings included.")
    created: Mapped[str] = created_at()


class Prompt(Base):
    """Rendered prompts, their parts in `texts`."""

    __tablename__ = "prompts"
    __table_args__ = (
        UniqueConstraint(
            *("sha256", "template", "template_sha256", "system_sha256", "user_sha256", "history_sha256"),
            name="uq_prompts",
        ),
    )

    id: Mapped[int] = row_id()
    sha256: Mapped[str] = mapped_column(
        SHA256, comment="The prompt's own hash over system, history and user text."
    )
    template: Mapped[str] = words("Template folder's name, with its version.")
    template_sha256: Mapped[str] = mapped_column(SHA256, comment="Hash of the template's files.")
    system_sha256: Mapped[str] = text_key("System text.")
    user_sha256: Mapped[str] = text_key("User text.")
    history_sha256: Mapped[str] = text_key("Earlier turns as JSON: a list of [role, text].")


class Attempt(Base):
    """One question asked and judged: a sample's turn."""

    __tablename__ = "attempts"
    __table_args__ = (
        UniqueConstraint("run_id", "problem", "sample", "turn"),
        CheckConstraint("sample >= 0 AND turn >= 1", name="key"),
    )

    id: Mapped[int] = row_id()
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), comment="The run it belongs to.")
    problem: Mapped[int] = mapped_column(ForeignKey("problems.id"), comment="The problem asked for.")
    sample: Mapped[int] = count("Number of the sample, from 0.")
    turn: Mapped[int] = count("Turn within the sample, from 1.")
    parent_id: Mapped[int | None] = mapped_column(
        ForeignKey("attempts.id"), comment="The attempt this one repairs or improves."
    )
    plan: Mapped[int | None] = count(
        "The plan of the parent's answer that this one carries out, from 1; NULL for none."
    )
    prompt: Mapped[int | None] = mapped_column(
        ForeignKey("prompts.id"), comment="The question; NULL for candidates given as files."
    )
    question_key: Mapped[str | None] = mapped_column(
        SHA256,
        index=True,
        comment="SHA-256 of all that decides an answer: model, parameters, prompt, sample, turn. Attempts "
        "with the same key share one answer. NULL for candidates given as files.",
    )
    status: Mapped[str | None] = symbol("How it ended; NULL while in progress.")
    created: Mapped[str] = created_at()
    finished: Mapped[str | None] = created_at("When `status` was set.")


class Response(Base):
    """Everything a model's server said, written before anything is parsed. Append-only."""

    __tablename__ = "responses"
    __table_args__ = (UniqueConstraint("attempt_id", "ordinal"),)

    id: Mapped[int] = row_id()
    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id"), comment="The attempt that asked.")
    ordinal: Mapped[int] = count("1 for the first answer or error of the attempt, and so on.")
    error: Mapped[str | None] = words("The provider's error message; NULL when there was an answer.")
    raw_sha256: Mapped[str | None] = text_key("The whole JSON body.")
    text_sha256: Mapped[str | None] = text_key("The answer's content, raw.")
    reasoning_sha256: Mapped[str | None] = text_key("The separate reasoning field.")
    refusal: Mapped[str | None] = words("The refusal field.")
    finish_reason: Mapped[str | None] = words("As the server spelled it.")
    request_id: Mapped[str | None] = words("The server's id of the request.")
    served_model: Mapped[str | None] = words("The model name in the answer.")
    system_fingerprint: Mapped[str | None] = words("The server's fingerprint of its configuration.")
    prompt_tokens: Mapped[int | None] = count("As reported; NULL for unknown.")
    completion_tokens: Mapped[int | None] = count("As reported, reasoning included; NULL for unknown.")
    reasoning_tokens: Mapped[int | None] = count("As reported; NULL for unknown.")
    cached_tokens: Mapped[int | None] = count("As reported; NULL for unknown.")
    latency_s: Mapped[float | None] = number("Seconds from question to whole answer.")
    cost_usd: Mapped[float | None] = number(
        "US dollars, as the server said, else by the prices the user gave; NULL for unknown."
    )
    retriable: Mapped[bool | None] = truth(
        "Of an error: whether asking again can help. NULL for unknown, and for an answer."
    )
    reused_from: Mapped[int | None] = mapped_column(
        ForeignKey("responses.id"),
        comment="The answer of another attempt with the same question key that this row repeats: nothing was "
        "asked or paid for it. NULL for what a server sent.",
    )
    created: Mapped[str] = created_at()


class Candidate(Base):
    """The program that extraction found in a response, if any; the newest row of an attempt counts."""

    __tablename__ = "candidates"

    id: Mapped[int] = row_id()
    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id"), index=True, comment="Its attempt.")
    source_sha256: Mapped[str | None] = text_key("The program; NULL when none was found.")
    status: Mapped[str | None] = symbol("Why none was found.")
    reason: Mapped[str] = words("The same in words, the server's among them; empty in old rows.")
    method: Mapped[str] = words("How it was found: `fence`, `bare` ...")
    warnings: Mapped[list[str]] = json("Oddities of the response, by name.")
    span_start: Mapped[int | None] = count("First character of the code in the response's text.")
    span_end: Mapped[int | None] = count("One past its last character.")
    created: Mapped[str] = created_at()


class Verification(Base):
    """One judgement of one candidate. Append-only: retracted by a row in `retractions`, never deleted."""

    __tablename__ = "verifications"
    __table_args__ = (
        # Covers what scores read, so that the wide rows themselves are never read for them.
        Index(
            "ix_verifications_leaderboard",
            *("attempt_id", "kind", "status", "backend", "size", "environment_id"),
            *("numerics", "purity", "own_kernel", "error_class", "flags", "rigor", "policy"),
            "screening",
        ),
        CheckConstraint("kind IN ('first', 'again', 'reproduce')", name="kind"),
    )

    id: Mapped[int] = row_id()
    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id"), comment="The attempt judged.")
    kind: Mapped[str] = symbol(
        "`first`, `again` (judged again) or `reproduce` (never counts for the leaderboard)."
    )
    status: Mapped[str] = symbol("The verdict.")
    backend: Mapped[str] = symbol("The backend's name: `cuda`, `cpp` or another.")
    size: Mapped[str] = words("Size preset.")
    numerics: Mapped[str] = symbol(NUMERICS)
    purity: Mapped[str] = symbol(PURITY)
    own_kernel: Mapped[bool] = truth(OWN_KERNEL)
    environment_id: Mapped[int | None] = mapped_column(
        ForeignKey("environments.id"), comment="Where it ran; NULL when no process was started."
    )
    reason: Mapped[str] = words("One sentence: why this status.")
    reused_from: Mapped[int | None] = mapped_column(
        ForeignKey("verifications.id"),
        index=True,
        comment="The verification of the same program, earlier in the sample, that this row repeats: nothing "
        "was run for it. NULL for one that was made.",
    )
    problem_id: Mapped[str] = words("The problem, as the verifier named it.")
    problem_sha256: Mapped[str] = mapped_column(SHA256, comment="SHA-256 of the reference it was judged by.")
    candidate_sha256: Mapped[str] = mapped_column(SHA256, comment="SHA-256 of the source that was judged.")
    sandbox_tier: Mapped[str | None] = words(
        "The tier that confined the candidate: docs/rationale/sandbox.md."
    )
    sandbox: Mapped[dict[str, Any] | None] = json("Tier, layers in force, and why not a stronger one.")
    settings: Mapped[dict[str, Any]] = json("The settings of the verification.")
    seeds: Mapped[dict[str, int]] = json(
        "The seeds, secret until then. Those of the timed calls follow from `timed`: "
        "`derived` in `pipeline/referee/ledger.py`."
    )
    inputs: Mapped[list[dict[str, Any]]] = json("Shape, dtype and strides of each input tensor.")
    errors: Mapped[list[dict[str, Any]]] = json("Error statistics, one entry a trial and output.")
    details_sha256: Mapped[str | None] = text_key(
        "Traceback of a failed candidate, else what its processes wrote."
    )
    exit: Mapped[str | None] = words("How the candidate's process ended by itself.")
    stage_seconds: Mapped[dict[str, float]] = json("Wall seconds by stage.")
    error_class: Mapped[str | None] = symbol(
        "The arithmetic that the results could come from, the worst of all trials; NULL where unknown."
    )
    determinism: Mapped[str | None] = symbol(
        "The result of a second call with the same inputs: `bit-equal` or `within error`; NULL where unknown."
    )
    flags: Mapped[list[str]] = json("The flags of a correct candidate.")
    kernels: Mapped[dict[str, Any] | None] = json("Kernels of one traced call; NULL where none was traced.")
    verifier: Mapped[str] = words("Version of kernelproof, policy, and hash of the tolerances.")
    rigor: Mapped[str | None] = symbol("`quick`, `standard` or `publish`: how exact its speedup had to be.")
    screening: Mapped[bool] = truth(
        "True for a search's quick look, with a bar in `settings`: its times do not count."
    )
    policy: Mapped[str | None] = words(
        "The policy by which it was judged, as in `verifier`; NULL in rows from before there were any."
    )
    created: Mapped[str] = created_at("When it was made (UTC, ISO 8601), as the verifier wrote it.")


class Build(Base):
    """The builds of a verification. Append-only."""

    __tablename__ = "builds"

    verification_id: Mapped[int] = verification_key()
    position: Mapped[int] = position_key("Order in which they were asked for, from 0.")
    key: Mapped[str] = words("SHA-256 over sources, flags, compilers, torch and architecture.")
    state: Mapped[str] = symbol("`ok`, `error`, `timeout`, `unavailable` or `infrastructure`.")
    name: Mapped[str] = words("The module's name.")
    library: Mapped[str | None] = words("Path of the library in the cache of the machine that built it.")
    library_sha256: Mapped[str | None] = words("SHA-256 of the library.")
    cached: Mapped[bool] = truth("True when nothing was compiled now.")
    duration_s: Mapped[float] = number("Wall seconds of the compilation.")
    cpu_s: Mapped[float] = number("Processor seconds of the compilation.")
    route: Mapped[str] = symbol("`full`, or `slim`: with those of torch's headers only that the sources use.")
    fallback: Mapped[str] = words("Why the slim route did not do, where it was tried.")
    commands: Mapped[list[str]] = json("Compiler and linker command lines.")
    log_sha256: Mapped[str | None] = text_key("The compilers' output; NULL when they said nothing.")


class Finding(Base):
    """Static findings of a verification. Append-only."""

    __tablename__ = "findings"

    verification_id: Mapped[int] = verification_key()
    position: Mapped[int] = position_key("Order, from 0.")
    rule: Mapped[str] = words("The rule's name.")
    severity: Mapped[str] = symbol("`note`, `warning` or `error`.")
    status: Mapped[str | None] = symbol("For an error: the status it leads to.")
    line: Mapped[int | None] = count("1-based line in the source.")
    message: Mapped[str] = words("The fault, and the remedy.")
    evidence: Mapped[str] = words("The source text that matched.")


class Check(Base):
    """The evidence of a verification: one row a check. Append-only."""

    __tablename__ = "checks"

    verification_id: Mapped[int] = verification_key()
    position: Mapped[int] = position_key("Order, from 0.")
    name: Mapped[str] = words("The check's stable name.")
    outcome: Mapped[str] = symbol("`pass`, `fail` or `not_applicable`.")
    asked: Mapped[str] = words("The question.")
    seen: Mapped[str] = words("The answer with its figures.")
    figures: Mapped[dict[str, Any]] = json("The same for machines.")


class Measurement(Base):
    """The times of a verification. Append-only."""

    __tablename__ = "measurements"
    verification_id: Mapped[int] = verification_key()
    baseline: Mapped[str] = words("The baseline it was measured against: `eager`.")
    candidate_ms: Mapped[float] = number("Time of one call of the candidate, as claimed.")
    baseline_ms: Mapped[float] = number("Median time of one call of the baseline.")
    speedup: Mapped[float] = number("Baseline over candidate, as far as both clocks agree.")
    speedup_low: Mapped[float] = number("Lower end of the speedup's 95 % interval: what ranks.")
    speedup_high: Mapped[float] = number("Upper end of the speedup's 95 % interval.")
    pace: Mapped[str] = symbol("`faster`, `same`, `slower` or `unresolved`.")
    resolution: Mapped[float] = number("Smallest relative difference the measurement claims.")
    aa_spread: Mapped[float] = number("Baseline against itself: half-width of the interval, as a fraction.")
    host_ms: Mapped[float] = number("One candidate call by the referee's own clock alone.")
    overhead_ms: Mapped[float] = number("The loop overhead taken off.")
    flush_bytes: Mapped[int] = count("Bytes written between calls to empty the L2 cache; 0: warm.")
    slots: Mapped[int] = count("Distinct input sets a block walks through.")
    order: Mapped[list[str]] = json("For each block `BC` (baseline first) or `CB`.")
    clocks_before: Mapped[dict[str, Any]] = json(
        "Clocks, temperature, power, throttle reasons or load before."
    )
    clocks_after: Mapped[dict[str, Any]] = json("The same after.")
    candidate_samples_ms: Mapped[list[list[float]]] = json("Raw times of the candidate, a list a block.")
    baseline_samples_ms: Mapped[list[list[float]]] = json("Raw times of the baseline, a list a block.")
    host_samples_ms: Mapped[list[list[float]]] = json(
        "The referee's own clock around each block: the candidate's, the baseline's."
    )
    inside_ms: Mapped[float | None] = number("The contestant's own clock for one candidate call.")
    unseen_ms: Mapped[float] = number("By how much `candidate_ms` exceeds `inside_ms`.")
    sessions: Mapped[list[int]] = json("For each block the pair of processes it ran in, from 0; [] for one.")
    calls: Mapped[list[int]] = json("For each block its secret number of calls.")
    disturbed: Mapped[list[str]] = json("Why blocks were repeated, an entry a block.")
    launch_bound: Mapped[bool] = truth("True when launching takes longer than computing.")
    replayed: Mapped[dict[str, Any] | None] = json("Times of one call replayed as a CUDA graph.")
    against: Mapped[list[dict[str, Any]]] = json("Further baselines, with the speedup against each.")
    roofline: Mapped[dict[str, Any] | None] = json("Bytes, operations, ceilings and the fraction reached.")
    compile_speedup: Mapped[float | None] = number(
        "Speedup against torch.compile's default mode, as in `against`; NULL where it was not measured."
    )
    compile_speedup_low: Mapped[float | None] = number("Lower end of its 95 % interval.")
    compile_speedup_high: Mapped[float | None] = number("Upper end of its 95 % interval.")
    roofline_fraction: Mapped[float | None] = number("The fraction reached, as in `roofline`.")
