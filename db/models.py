"""All tables of the database, from leases and batches through attempts and their evidence to the callers,
queue, workers and GPUs of the evaluation service. `columns` has the kinds of columns, and
docs/reference/schema.md what they mean."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary, MetaData, UniqueConstraint, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from kernelproof.db.columns import (
    SHA256,
    AnyText,
    Int64,
    any_text,
    boolean,
    count,
    created_at,
    digest,
    json,
    keyword,
    number,
    position_key,
    reference,
    row_id,
    text_key,
    verification_key,
)

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING)


class Lease(Base):
    """Questions that a process is at work on. After a minute without renewal any process may take a lease."""

    __tablename__ = "leases"

    key: Mapped[str] = mapped_column(
        AnyText,
        primary_key=True,
        comment="The attempt's question key, `attempt:N` where there is none, or `tune:...` for a tuning.",
    )
    owner: Mapped[str] = any_text("Machine, process and batch that hold it.")
    renewed: Mapped[float] = number("Unix time of the last renewal, in seconds.")


class Batch(Base):
    """Commands that ask models or judge candidates: their configuration, progress and end."""

    __tablename__ = "batches"

    id: Mapped[int] = row_id()
    owner: Mapped[str] = any_text("Machine and process of the command.")
    name: Mapped[str | None] = any_text("The name of its runs.")
    runs: Mapped[list[int]] = json("Numbers of the runs that it adds to, one for each model.")
    config: Mapped[dict[str, Any]] = json("The whole configuration, resolved: `--like` starts from it.")
    progress: Mapped[dict[str, Any]] = json("What `kernelproof runs status` shows, as of `renewed`.")
    renewed: Mapped[float] = number("Unix time of the last sign of life, in seconds.")
    ended: Mapped[str | None] = any_text("How the command ended; NULL while it works, and if it was killed.")
    created: Mapped[str] = created_at()
    finished: Mapped[str | None] = created_at("When the command ended.")


class ServerBatch(Base):
    """Batches of questions at a model's server, to be answered within a day."""

    __tablename__ = "server_batches"

    id: Mapped[int] = row_id()
    server_id: Mapped[str] = any_text(
        "The server's id of the batch. Until the server has given one: `?` and an id of kernelproof's."
    )
    model: Mapped[str] = any_text("`openai:MODEL`.")
    base_url: Mapped[str | None] = any_text("The server's address, when one was set.")
    keys: Mapped[list[str]] = json("Keys of its questions, sent as custom ids, without those that failed.")
    open: Mapped[bool] = boolean("True as long as answers may come.")
    created: Mapped[str] = created_at()


APPEND_ONLY = (
    *("responses", "verifications", "builds", "findings", "checks", "measurements"),
    *("retractions", "reported_results", "hash_chain", "audits"),
)
"""Tables whose rows triggers protect from UPDATE and DELETE."""

NUMERICS = "`fp32` or `tf32`: the arithmetic of float32 problems, for candidate and baseline alike."
PURITY = "`any` or `own-compute`: whether compute operators of libraries are accepted."
OWN_KERNEL = "False when no kernel of the candidate's own was required."


class Text(Base):
    """Every long text, once: prompts, raw responses, sources, build logs, process output."""

    __tablename__ = "texts"

    sha256: Mapped[str] = digest("SHA-256 of the body's UTF-8 bytes.", primary_key=True)
    body: Mapped[str] = any_text("The text; a BLOB where it is not valid Unicode.")
    bytes: Mapped[int] = count("Length of the body in UTF-8 bytes.")


class Problem(Base):
    """Reference architectures. An edited file gets another row. Results of both are never compared."""

    __tablename__ = "problems"
    __table_args__ = (UniqueConstraint("problem_id", "sha256"),)

    id: Mapped[int] = row_id()
    problem_id: Mapped[str] = any_text("The problem's id, such as `level1/23`.")
    suite: Mapped[str] = any_text("`kernelproof`, the suite folder's name, or `file`.")
    level: Mapped[int | None] = count("N of a folder named `levelN`; NULL elsewhere.")
    name: Mapped[str] = any_text("The file's name without number and ending.")
    sha256: Mapped[str] = text_key("SHA-256 of the reference's source.")
    sizes: Mapped[dict[str, Any]] = json("Named size presets.")
    signature: Mapped[dict[str, Any]] = json("Parameter names of the constructor and of forward.")
    summary: Mapped[str] = any_text("First line of the reference's docstring.")


class Environment(Base):
    """Machines as verifications found them; one row for each distinct set of facts."""

    __tablename__ = "environments"

    id: Mapped[int] = row_id()
    fingerprint: Mapped[str] = digest("SHA-256 of `facts` in canonical form.", unique=True)
    device_name: Mapped[str] = any_text("The GPU's name, else the CPU's: what the leaderboard groups by.")
    gpu_name: Mapped[str | None] = any_text("GPU model; NULL on a CPU.")
    gpu_uuid: Mapped[str | None] = any_text("UUID of the GPU; NULL on a CPU.")
    driver: Mapped[str | None] = any_text("NVIDIA driver version.")
    cuda: Mapped[str | None] = any_text("CUDA version that torch was built with.")
    torch: Mapped[str] = any_text("torch version.")
    python: Mapped[str] = any_text("Python version.")
    nvcc: Mapped[str | None] = any_text("nvcc version.")
    cxx: Mapped[str | None] = any_text("First line of `c++ --version`.")
    cpu: Mapped[str] = any_text("Processor model.")
    host_sha256: Mapped[str] = any_text("A hash that tells machines apart without naming them.")
    kernelproof: Mapped[str] = any_text("kernelproof's version.")
    facts: Mapped[dict[str, Any]] = json("All known facts, with VBIOS, ECC, MIG, power limit and clocks.")


class Run(Base):
    """Attempts with equal settings. A later command with the same settings adds to the same run."""

    __tablename__ = "runs"

    id: Mapped[int] = row_id()
    key: Mapped[str] = digest("SHA-256 of `settings` in canonical form.", unique=True)
    name: Mapped[str | None] = any_text("The user's label.")
    kind: Mapped[str] = keyword(
        "`generate`, `verify` for candidates given as files, `import` for published ones, or `tune` for what "
        "a tuner tried."
    )
    model: Mapped[str] = any_text("`openai:MODEL`, `replay:FILE`, `file`, `tune`, or the label of an import.")
    base_url: Mapped[str | None] = any_text("The model server's address, when one was set.")
    template: Mapped[str | None] = any_text("Prompt template with its version.")
    template_sha256: Mapped[str | None] = digest("Hash of the template's files.")
    backend: Mapped[str] = keyword("The backend's name: `cuda`, `cpp` or another.")
    size: Mapped[str] = any_text("Size preset.")
    numerics: Mapped[str] = keyword(NUMERICS)
    purity: Mapped[str] = keyword(PURITY)
    own_kernel: Mapped[bool] = boolean(OWN_KERNEL)
    turns: Mapped[int] = count("The most turns that a sample may have.")
    strategy: Mapped[str | None] = any_text("The search strategy of a sample; NULL where no model was asked.")
    settings: Mapped[dict[str, Any]] = json("All settings, the sampling settings included.")
    created: Mapped[str] = created_at()


class Prompt(Base):
    """Rendered prompts. Their parts are rows of `texts`."""

    __tablename__ = "prompts"
    __table_args__ = (
        UniqueConstraint(
            *("sha256", "template", "template_sha256", "system_sha256", "user_sha256", "history_sha256"),
            name="uq_prompts",
        ),
    )

    id: Mapped[int] = row_id()
    sha256: Mapped[str] = digest("The prompt's own hash over system, history and user text.")
    template: Mapped[str] = any_text("Template folder's name, with its version.")
    template_sha256: Mapped[str] = digest("Hash of the template's files.")
    system_sha256: Mapped[str] = text_key("System text.")
    user_sha256: Mapped[str] = text_key("User text.")
    history_sha256: Mapped[str] = text_key("Earlier turns as JSON: a list of [role, text].")


class Attempt(Base):
    """Turns of samples: a question to a model, and its result. A candidate from a file has no question."""

    __tablename__ = "attempts"
    __table_args__ = (
        UniqueConstraint("run_id", "problem", "sample", "turn"),
        CheckConstraint("sample >= 0 AND turn >= 1", name="key"),
    )

    id: Mapped[int] = row_id()
    run_id: Mapped[int] = reference("runs.id", "The run it belongs to.")
    problem: Mapped[int] = reference("problems.id", "The problem.")
    sample: Mapped[int] = count("Number of the sample, from 0.")
    turn: Mapped[int] = count("Turn within the sample, from 1.")
    parent_id: Mapped[int | None] = reference("attempts.id", "The attempt that this one repairs or improves.")
    plan: Mapped[int | None] = count("The plan of the parent's answer that it carries out, from 1; or NULL.")
    prompt: Mapped[int | None] = reference("prompts.id", "The question; NULL for candidates given as files.")
    question_key: Mapped[str | None] = mapped_column(
        SHA256,
        index=True,
        comment="SHA-256 of all that decides an answer: model, parameters, prompt, sample, turn. Attempts "
        "with the same key share one answer. NULL for candidates given as files.",
    )
    status: Mapped[str | None] = keyword("How the attempt ended; NULL while it is in progress.")
    created: Mapped[str] = created_at()
    finished: Mapped[str | None] = created_at("When `status` was set.")


class Response(Base):
    """Everything a model's server said, written before anything is parsed. Append-only."""

    __tablename__ = "responses"
    __table_args__ = (UniqueConstraint("attempt_id", "ordinal"),)

    id: Mapped[int] = row_id()
    attempt_id: Mapped[int] = reference("attempts.id", "The attempt that asked.")
    ordinal: Mapped[int] = count("1 for the first answer or error of the attempt, and so on.")
    error: Mapped[str | None] = any_text("The provider's error message; NULL when there was an answer.")
    raw_sha256: Mapped[str | None] = text_key("The whole JSON body.")
    text_sha256: Mapped[str | None] = text_key("The answer's content, raw.")
    reasoning_sha256: Mapped[str | None] = text_key("The separate reasoning field.")
    refusal: Mapped[str | None] = any_text("The refusal field.")
    finish_reason: Mapped[str | None] = any_text("The server's word for why the answer ended.")
    request_id: Mapped[str | None] = any_text("The server's id of the request.")
    served_model: Mapped[str | None] = any_text("The model name in the answer.")
    system_fingerprint: Mapped[str | None] = any_text("The server's fingerprint of its configuration.")
    prompt_tokens: Mapped[int | None] = count("Tokens of the prompt, as reported; NULL: unknown.")
    completion_tokens: Mapped[int | None] = count("Tokens of the answer, with reasoning; NULL: unknown.")
    reasoning_tokens: Mapped[int | None] = count("Tokens of the reasoning; NULL: unknown.")
    cached_tokens: Mapped[int | None] = count("Tokens of the prompt from the server's cache; NULL: unknown.")
    latency_s: Mapped[float | None] = number("Seconds from question to whole answer.")
    cost_usd: Mapped[float | None] = number("US dollars, by the server or the user's prices; NULL: unknown.")
    retriable: Mapped[bool | None] = boolean(
        "For an error: whether it can help to ask again. NULL where that is unknown, and for an answer."
    )
    reused_from: Mapped[int | None] = mapped_column(
        ForeignKey("responses.id"),
        comment="The row that this one repeats: the answer to another attempt with the same question key. "
        "Nothing was asked or paid. NULL where a server was asked.",
    )
    created: Mapped[str] = created_at()


class Candidate(Base):
    """The program that extraction found in a response, if any; the newest row of an attempt counts."""

    __tablename__ = "candidates"

    id: Mapped[int] = row_id()
    attempt_id: Mapped[int] = reference("attempts.id", "The attempt.", index=True)
    source_sha256: Mapped[str | None] = text_key("The program; NULL when none was found.")
    status: Mapped[str | None] = keyword("The status where no program was found; NULL when one was.")
    reason: Mapped[str] = any_text("The same in words; empty in rows of old versions.")
    method: Mapped[str] = any_text("How the program was found: `fence`, `bare` ...")
    warnings: Mapped[list[str]] = json("Oddities of the response, by name.")
    span_start: Mapped[int | None] = count("First character of the code in the response's text.")
    span_end: Mapped[int | None] = count("One past the last character of the code.")
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
    attempt_id: Mapped[int] = reference("attempts.id", "The attempt judged.")
    kind: Mapped[str] = keyword("`first`, `again` (judged again) or `reproduce` (counts for no leaderboard).")
    status: Mapped[str] = keyword("The verdict.")
    backend: Mapped[str] = keyword("The backend's name: `cuda`, `cpp` or another.")
    size: Mapped[str] = any_text("Size preset.")
    numerics: Mapped[str] = keyword(NUMERICS)
    purity: Mapped[str] = keyword(PURITY)
    own_kernel: Mapped[bool] = boolean(OWN_KERNEL)
    environment_id: Mapped[int | None] = reference(
        "environments.id", "Its machine; NULL: nothing was started."
    )
    reason: Mapped[str] = any_text("One sentence: why this status.")
    reused_from: Mapped[int | None] = mapped_column(
        ForeignKey("verifications.id"),
        index=True,
        comment="The row that this one repeats: an earlier verification of the same program in the sample. "
        "Nothing was run. NULL where the program was run.",
    )
    problem_id: Mapped[str] = any_text("The problem, as the verifier named it.")
    problem_sha256: Mapped[str] = digest("SHA-256 of the reference's source.")
    candidate_sha256: Mapped[str] = digest("SHA-256 of the source that was judged.")
    sandbox_tier: Mapped[str | None] = any_text("The tier that confined it: docs/rationale/sandbox.md.")
    sandbox: Mapped[dict[str, Any] | None] = json("Tier, layers in force, why no stronger one.")
    settings: Mapped[dict[str, Any]] = json("The settings of the verification.")
    seeds: Mapped[dict[str, int]] = json(
        "Seeds of the inputs, which were secret until the verdict. Seeds of the timed calls follow from "
        "`timed`: see `derived` in `pipeline/verifier/referee/ledger.py`."
    )
    inputs: Mapped[list[dict[str, Any]]] = json("Shape, dtype and strides of each input tensor.")
    errors: Mapped[list[dict[str, Any]]] = json("Error statistics, one entry for each trial and output.")
    details_sha256: Mapped[str | None] = text_key("Traceback of a failed candidate, else its output.")
    exit: Mapped[str | None] = any_text("How the candidate's process ended by itself: `exit 0` ...")
    stage_seconds: Mapped[dict[str, float]] = json("Wall seconds by stage.")
    error_class: Mapped[str | None] = keyword(
        "The arithmetic that the results could come from, the worst of all trials; NULL where unknown."
    )
    determinism: Mapped[str | None] = keyword(
        "The result of a second call with the same inputs: `bit-equal` or `within error`; NULL where unknown."
    )
    flags: Mapped[list[str]] = json("The flags of a correct candidate.")
    kernels: Mapped[dict[str, Any] | None] = json("Kernels of one traced call; NULL where none was traced.")
    verifier: Mapped[str] = any_text("Version of kernelproof, policy, and hash of the tolerances.")
    rigor: Mapped[str | None] = keyword("`quick`, `standard` or `publish`: how exact its speedup had to be.")
    screening: Mapped[bool] = boolean(
        "True for a screening in a search, with a `bar` in `settings`: its times do not count."
    )
    policy: Mapped[str | None] = any_text(
        "The policy by which it was judged, as in `verifier`; NULL in rows of versions without policies."
    )
    created: Mapped[str] = created_at("When it was made (UTC, ISO 8601), as the verifier wrote it.")


class Build(Base):
    """The builds of a verification. Append-only."""

    __tablename__ = "builds"

    verification_id: Mapped[int] = verification_key()
    position: Mapped[int] = position_key("Place in the order of the candidate's requests, from 0.")
    key: Mapped[str] = any_text("SHA-256 over sources, flags, compilers, torch and architecture.")
    state: Mapped[str] = keyword("`ok`, `error`, `timeout`, `unavailable` or `infrastructure`.")
    name: Mapped[str] = any_text("The module's name.")
    library: Mapped[str | None] = any_text("Path of the library in the cache of the machine that built it.")
    library_sha256: Mapped[str | None] = any_text("SHA-256 of the library.")
    cached: Mapped[bool] = boolean("True when the build was taken from the cache.")
    duration_s: Mapped[float] = number("Wall seconds of the compilation.")
    cpu_s: Mapped[float] = number("Processor seconds of the compilation.")
    route: Mapped[str] = keyword("`full`, or `slim`: with only those of torch's headers that sources use.")
    fallback: Mapped[str] = any_text("The reason why the slim route failed, where it was tried; else empty.")
    commands: Mapped[list[str]] = json("Compiler and linker command lines.")
    log_sha256: Mapped[str | None] = text_key("The compilers' output; NULL when there was none.")


class Finding(Base):
    """Static findings of a verification. Append-only."""

    __tablename__ = "findings"

    verification_id: Mapped[int] = verification_key()
    position: Mapped[int] = position_key("Order, from 0.")
    rule: Mapped[str] = any_text("The rule's name.")
    severity: Mapped[str] = keyword("`note`, `warning` or `error`.")
    status: Mapped[str | None] = keyword("For an error: the status it leads to.")
    line: Mapped[int | None] = count("1-based line in the source.")
    message: Mapped[str] = any_text("The fault, and the remedy.")
    evidence: Mapped[str] = any_text("The source text that matched.")


class Check(Base):
    """The checks of a verification: one row for each. Append-only."""

    __tablename__ = "checks"

    verification_id: Mapped[int] = verification_key()
    position: Mapped[int] = position_key("Order, from 0.")
    name: Mapped[str] = any_text("The check's stable name.")
    outcome: Mapped[str] = keyword("`pass`, `fail` or `not_applicable`.")
    asked: Mapped[str] = any_text("The question that the check asks.")
    seen: Mapped[str] = any_text("The answer with its figures.")
    figures: Mapped[dict[str, Any]] = json("The figures of the answer, for programs.")


class Measurement(Base):
    """The times of a verification. Append-only."""

    __tablename__ = "measurements"
    verification_id: Mapped[int] = verification_key()
    baseline: Mapped[str] = any_text("The baseline that it was measured against: `eager`.")
    candidate_ms: Mapped[float] = number("Time of one candidate call, as it is claimed.")
    baseline_ms: Mapped[float] = number("Median time of one call of the baseline.")
    speedup: Mapped[float] = number("Baseline over candidate, as far as both clocks agree.")
    speedup_low: Mapped[float] = number("Lower end of the speedup's 95 % interval, which ranks.")
    speedup_high: Mapped[float] = number("Upper end of the speedup's 95 % interval.")
    pace: Mapped[str] = keyword("`faster`, `same`, `slower` or `unresolved`.")
    unresolved_because: Mapped[str | None] = any_text(
        "Why the pace is unresolved; NULL where it is not, and in rows of policy 2 and before."
    )
    resolution: Mapped[float] = number("Smallest relative difference that the measurement claims.")
    aa_spread: Mapped[float] = number("Baseline against itself: half-width of the interval, as a fraction.")
    host_ms: Mapped[float] = number("Time of one candidate call by the referee's own clock alone.")
    overhead_ms: Mapped[float] = number("Overhead of the loop for one call, which is subtracted.")
    flush_bytes: Mapped[int] = count("Bytes written between calls to empty the L2 cache; 0: warm.")
    slots: Mapped[int] = count("Number of distinct input sets that a block walks through.")
    order: Mapped[list[str]] = json("For each block `BC` (baseline first) or `CB`.")
    clocks_before: Mapped[dict[str, Any]] = json("Clocks, temperature, power, throttling or load before.")
    clocks_after: Mapped[dict[str, Any]] = json("The same after.")
    candidate_samples_ms: Mapped[list[list[float]]] = json("Times of the candidate, a list for each block.")
    baseline_samples_ms: Mapped[list[list[float]]] = json("Times of the baseline, a list for each block.")
    host_samples_ms: Mapped[list[list[float]]] = json(
        "Times of the candidate's and the baseline's block, by the referee's own clock, for each round."
    )
    inside_ms: Mapped[float | None] = number("Time of one candidate call by the contestant's own clock.")
    unseen_ms: Mapped[float] = number("By how much `candidate_ms` exceeds `inside_ms`.")
    sessions: Mapped[list[int]] = json("For each block the number of its pair of processes; [] for one pair.")
    calls: Mapped[list[int]] = json("For each block its number of calls, which was secret.")
    disturbed: Mapped[list[str]] = json("The reasons why blocks were repeated, one for each of these blocks.")
    launch_bound: Mapped[bool] = boolean("True when launching takes longer than computing.")
    replayed: Mapped[dict[str, Any] | None] = json("Times of one call replayed as a CUDA graph.")
    against: Mapped[list[dict[str, Any]]] = json("Further baselines, with the speedup against each.")
    roofline: Mapped[dict[str, Any] | None] = json("Bytes, operations, ceilings and the fraction reached.")
    compile_speedup: Mapped[float | None] = number(
        "Speedup against torch.compile's default mode, as in `against`; NULL where it was not measured."
    )
    compile_speedup_low: Mapped[float | None] = number("Lower end of its 95 % interval.")
    compile_speedup_high: Mapped[float | None] = number("Upper end of its 95 % interval.")
    roofline_fraction: Mapped[float | None] = number("The fraction reached, as in `roofline`.")


class Retraction(Base):
    """Verifications that no longer count, or count again. The newest row of a verification decides.
    Append-only."""

    __tablename__ = "retractions"

    id: Mapped[int] = row_id()
    verification_id: Mapped[int] = reference("verifications.id", "The verification.", index=True)
    counts: Mapped[bool] = boolean("False: retracted. True: the retraction was taken back.")
    reason: Mapped[str] = any_text("The reason, in the words of the person who gave it.")
    created: Mapped[str] = created_at()


class Reported(Base):
    """Claims that were published for an imported program. Verifications stand beside them. The newest
    row of an attempt counts. Append-only."""

    __tablename__ = "reported_results"

    id: Mapped[int] = row_id()
    attempt_id: Mapped[int] = reference("attempts.id", "The attempt that holds the program.", index=True)
    source: Mapped[str] = any_text("The file below the folder that was imported, or the line of a file.")
    said_in: Mapped[str | None] = any_text("The file that makes the claim; NULL where nothing is claimed.")
    compiled: Mapped[bool | None] = boolean("Whether it compiled, as claimed; NULL: nothing is claimed.")
    correct: Mapped[bool | None] = boolean("Whether it was correct, as claimed; NULL: nothing is claimed.")
    runtime_ms: Mapped[float | None] = number("Time of one call of the candidate, as claimed.")
    baseline_ms: Mapped[float | None] = number("Time of one call of the reference, as claimed.")
    speedup: Mapped[float | None] = number("The speedup as claimed, else `baseline_ms` over `runtime_ms`.")
    device: Mapped[str | None] = any_text("The device that it was measured on, in the words of the claim.")
    raw_sha256: Mapped[str | None] = text_key("The claim as it was written, as JSON.")
    created: Mapped[str] = created_at()


class Audit(Base):
    """Results that led the leaderboard, and what they were when `kernelproof runs audit` verified them again.
    Append-only."""

    __tablename__ = "audits"

    id: Mapped[int] = row_id()
    began: Mapped[str] = created_at("When the audit began (UTC, ISO 8601): one moment for all results of it.")
    seed: Mapped[int | None] = count("The seed by which the results were drawn; NULL where all were taken.")
    verification_id: Mapped[int] = reference("verifications.id", "The verification that ranked.", index=True)
    reproduction_id: Mapped[int | None] = reference("verifications.id", "The new one; NULL: nothing was run.")
    finding: Mapped[str] = keyword(
        "`same` or `faster`: the result held. `ambiguous` or `not_comparable`: undecided. Any "
        "other: it did not hold."
    )
    reason: Mapped[str] = any_text("The finding in words.")
    created: Mapped[str] = created_at()


class ScoreFacts(Base):
    """Facts that many verifications share: each combination is stored once. This is a cache: it may be
    emptied together with `score_cells`."""

    __tablename__ = "score_facts"

    id: Mapped[int] = row_id()
    facts: Mapped[list[Any]] = json("The fields of `Facts` in `db/scores/filters.py`, in their order.")


class ScoreCell(Base):
    """Packed rows of the leaderboard: the attempts of up to 1,024 samples of a run and problem. This is a
    cache: it may be emptied, if all samples are listed in `score_changes`."""

    __tablename__ = "score_cells"

    run_id: Mapped[int] = reference("runs.id", "The run.", primary_key=True)
    problem: Mapped[int] = reference("problems.id", "The problem.", primary_key=True)
    chunk: Mapped[int] = position_key("Number of the sample divided by 1,024.")
    packed: Mapped[bytes] = mapped_column(LargeBinary, comment="Records as `db/scores/packing.py` has them.")


class ScoreChange(Base):
    """Samples that changed since they were packed. Triggers list them where an attempt, answer, verification
    or retraction is stored; the next leaderboard packs them, and empties the list."""

    __tablename__ = "score_changes"

    run_id: Mapped[int] = reference("runs.id", "The run.", primary_key=True)
    problem: Mapped[int] = reference("problems.id", "The problem.", primary_key=True)
    sample: Mapped[int] = position_key("The sample.")


class CurrentPolicy(Base):
    """The policy under which results rank: that of the newest program that opened the database. One row."""

    __tablename__ = "current_policy"

    policy: Mapped[str] = any_text("As verifications have it.", primary_key=True)


class RunTag(Base):
    """Words that people put on runs, to find them together."""

    __tablename__ = "run_tags"

    run_id: Mapped[int] = reference("runs.id", "The run.", primary_key=True)
    tag: Mapped[str] = any_text("The word.", primary_key=True)
    created: Mapped[str] = created_at()


class Link(Base):
    """The chain of hashes of databases that development versions before 0.2 wrote: the `db check` of such a
    version verifies it. Nothing is added now."""

    __tablename__ = "hash_chain"

    id: Mapped[int] = row_id()
    record: Mapped[str] = keyword("The table of the row, or `migration`.")
    number: Mapped[int] = count("The row's `id` in that table, or the number of links before a `migration`.")
    content: Mapped[bytes] = mapped_column(LargeBinary, comment="SHA-256 of the row and of its evidence.")
    sha256: Mapped[bytes] = mapped_column(LargeBinary, comment="SHA-256 of this link and the one before.")
    created: Mapped[str | None] = created_at("Of a `migration`; else NULL.")


class Caller(Base):
    """Callers of the evaluation service, each with a token. The token itself is not stored."""

    __tablename__ = "callers"

    name: Mapped[str] = any_text("The name given by the operator.", primary_key=True)
    token_sha256: Mapped[str] = keyword("SHA-256 of the token, which was shown once.")
    quota: Mapped[int | None] = count("Most evaluations of the caller that may wait or run; NULL: no limit.")
    created: Mapped[str] = created_at()
    revoked: Mapped[str | None] = created_at("When the token was revoked; NULL: it is accepted.")


def _partial(name: str, condition: str, *columns: str) -> Index:
    """An index of few rows of `evaluations`."""
    where = text(condition)
    return Index(f"ix_evaluations_{name}", *columns, sqlite_where=where, postgresql_where=where)


class Evaluation(Base):
    """The queue of the evaluation service: one row for each candidate that was sent. A result is an attempt.
    Rows change until they have ended, and stay afterwards."""

    __tablename__ = "evaluations"
    __table_args__ = (
        UniqueConstraint("caller", "idempotency_key", name="uq_evaluations_idempotency"),
        Index("ix_evaluations_order", "state", "backend", "priority", "submitted", "id"),
        Index("ix_evaluations_caller", "state", "caller"),
        Index("ix_evaluations_finished", "state", "finished"),
        _partial("deadline", "deadline IS NOT NULL", "state", "deadline"),
        _partial("held", "leased IS NOT NULL", "owner", "leased", "state"),
        _partial("late", "late_verdicts > 0 OR late_builds > 0", "late_verdicts", "late_builds"),
        Index("ix_evaluations_request", "request_sha256", "state"),
    )

    id: Mapped[str] = any_text("The id that the caller knows.", primary_key=True)
    caller: Mapped[str] = any_text("Name of the caller; `local` where no token is asked for.")
    idempotency_key: Mapped[str | None] = any_text("The caller's key: the same one gets the same evaluation.")
    request_sha256: Mapped[str] = keyword("SHA-256 of problem, text, settings, and the verifier's version.")
    label: Mapped[str | None] = any_text("Name of the run that the attempt is stored under.")
    problem: Mapped[int] = mapped_column(Int64, ForeignKey("problems.id"), comment="The problem.")
    text_sha256: Mapped[str] = text_key("The text that was sent: a program, or an answer that holds one.")
    settings: Mapped[dict[str, Any]] = json("The `VerifySettings`, resolved.")
    backend: Mapped[str] = keyword("The backend in `settings`: workers take what their machine can run.")
    priority: Mapped[int] = count("Evaluations of greater priority are taken first.")
    submitted: Mapped[float] = number("Unix time in seconds, by the database's clock.")
    deadline: Mapped[float | None] = number("Unix time after which it is not begun any more; NULL: none.")
    state: Mapped[str] = keyword(
        "`queued`, `building`, `built`, `running`, `done`, `failed`, `expired` or `cancelled`."
    )
    token: Mapped[int] = count("Fencing token: how often it was taken. What has an older one is refused.")
    owner: Mapped[str | None] = any_text("Machine and process of the worker or builder that has it.")
    leased: Mapped[float | None] = number("Unix time at which the owner's lease ends, unless it is renewed.")
    started: Mapped[float | None] = number("Unix time when the last worker took it.")
    finished: Mapped[float | None] = number("Unix time when it ended.")
    attempt_id: Mapped[int | None] = mapped_column(Int64, ForeignKey("attempts.id"), comment="The result.")
    reused: Mapped[bool] = boolean("True when it got the result of an equal evaluation, and nothing was run.")
    error: Mapped[str | None] = any_text("Why there is no result, for a failed or expired evaluation.")
    infrastructure: Mapped[bool] = boolean("True where `error` is the service's failure, not the request's.")
    late_verdicts: Mapped[int] = count("Verdicts that came after the lease was lost, and were refused.")
    bad_gpus: Mapped[int] = count("Number of GPUs that were set aside while their judge had this evaluation.")
    artefact: Mapped[str | None] = digest("Key of the artefact that a builder published; NULL: none.")
    built: Mapped[float | None] = number("Unix time when a builder had built it.")
    late_builds: Mapped[int] = count("Number of builds that came after the lease was lost, and were refused.")
    losses: Mapped[int] = count("Leases on it that were lost: an owner was killed, or silent for too long.")
    most_losses: Mapped[int] = count("The evaluation ends without a result after this many losses.")


class Worker(Base):
    """Workers, builders and judges of the evaluation service, and their last sign of life."""

    __tablename__ = "workers"

    owner: Mapped[str] = any_text("Machine and process.", primary_key=True)
    role: Mapped[str] = keyword("`all`, `build` or `judge`.")
    backend: Mapped[str] = any_text("Backends that it takes, separated by commas.")
    device: Mapped[str] = any_text("The device that it measures on; empty for a builder.")
    places: Mapped[int] = count("The most evaluations that it has at once.")
    running: Mapped[int] = count("Number of evaluations that it has now.")
    done: Mapped[int] = count("Number of evaluations that it has ended.")
    renewed: Mapped[float] = number("Unix time of its last sign of life, by the database's clock.")
    created: Mapped[str] = created_at()
    ended: Mapped[str | None] = created_at(
        "When it ended in order; NULL while it works, or if it was killed."
    )
    gpu: Mapped[str | None] = any_text("UUID of the one GPU that it measures on.")
    waits: Mapped[str | None] = any_text("The reason why it takes no evaluations now; NULL: it takes them.")


class Gpu(Base):
    """GPUs that judges of the evaluation service have seen. At most one judge in the whole cluster
    holds a GPU. Rows change, and are not deleted."""

    __tablename__ = "gpus"

    uuid: Mapped[str] = any_text("`GPU-...`, as the driver names it.", primary_key=True)
    name: Mapped[str] = any_text("The GPU's product name.")
    host: Mapped[str] = any_text("Name of the machine on which a judge saw it last.")
    owner: Mapped[str | None] = any_text("Machine and process of the judge that holds it; NULL: none does.")
    token: Mapped[int] = count("Fencing token: how often it was taken. A verdict of an older one is refused.")
    leased: Mapped[float | None] = number("Unix time at which the judge's lease ends, unless it is renewed.")
    renewed: Mapped[float] = number("Unix time of its judge's last sign of life, by the database's clock.")
    set_aside: Mapped[str | None] = any_text("The reason why no judge takes the GPU; NULL: any judge may.")
    unproven: Mapped[bool] = boolean("True after an operator put it back, until it has passed the canary.")
    created: Mapped[str] = created_at()


TABLES: tuple[type[Base], ...] = tuple(Base.__subclasses__())
"""All tables, in the order of the schema's documentation."""
