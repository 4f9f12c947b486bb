"""The views: scores for people who speak SQL. They are made anew whenever the schema is brought up.

The statements are such that SQLite and PostgreSQL take them alike. `kernelproof.db.documentation` prints the
meaning of each column. A change here needs a migration, which may be empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection

from kernelproof.db.counting import CURRENT_POLICY, NO_JUDGEMENT, order_in_sql, stale_in_sql
from kernelproof.types import Status
from kernelproof.types.verification import MEANINGS
from kernelproof.types.verification import RULES as _RULES

SETTING = tuple(MEANINGS)
_NO_JUDGEMENT = "(" + ", ".join(f"'{status}'" for status in sorted(NO_JUDGEMENT)) + ")"
_BEFORE_BUILT = "(" + ", ".join(f"'{status}'" for status in Status if not status.is_built) + ")"
_RETRACTED = (
    "EXISTS (SELECT 1 FROM retractions t WHERE t.verification_id = v.id AND NOT t.counts AND t.id = "
    "(SELECT MAX(u.id) FROM retractions u WHERE u.verification_id = v.id))"
)
_SAMPLE = ("run_id", "problem", "sample")


@dataclass(frozen=True)
class View:
    name: str
    meaning: str
    columns: dict[str, str]
    query: str

    @property
    def statement(self) -> str:
        return f"CREATE VIEW {self.name} AS {self.query}"


def _same(one: str, other: str, columns: Iterable[str]) -> str:
    return " AND ".join(f"{one}.{column} = {other}.{column}" for column in columns)


def _names(table: str, columns: Iterable[str]) -> str:
    return ", ".join(f"{table}.{column}" for column in columns)


_COUNTING_COLUMNS = {
    "verification_id": "The row of `verifications`.",
    "attempt_id": "The attempt judged.",
    "status": "The verdict.",
    **MEANINGS,
    "rigor": "`quick`, `standard` or `publish`.",
    "policy": "The policy by which it was judged.",
    "stale": "1 where `policy` is not the one in `current_policy`: such rows do not rank.",
    "screening": "1 for a search's quick look: its times do not count.",
    "error_class": "The arithmetic that the results could come from.",
    "flags": "The flags of a correct candidate, a JSON list.",
}
_ELIGIBLE = View(
    "eligible_verifications",
    "The verifications that are neither reproductions nor retracted.",
    {
        **{name: meaning for name, meaning in _COUNTING_COLUMNS.items() if name != "device"},
        "reached": "The GPU's name, else the CPU's; NULL where no device was reached.",
        "run_id": "The attempt's run.",
        "problem": "The row of `problems`.",
        "sample": "Number of the attempt's sample.",
        "place": "1 for the one that goes first among those of its attempt, 2 for the next ...",
    },
    "SELECT v.id AS verification_id, v.attempt_id, v.status, v.backend, v.size, v.numerics, v.purity, "
    f"v.own_kernel, v.rigor, v.policy, {stale_in_sql('v', CURRENT_POLICY)} AS stale, "
    "CASE WHEN v.screening THEN 1 ELSE 0 END AS screening, v.error_class, v.flags, "
    "e.device_name AS reached, a.run_id, a.problem, a.sample, "
    f"ROW_NUMBER() OVER (PARTITION BY v.attempt_id ORDER BY {order_in_sql('v', CURRENT_POLICY)}) AS place "
    "FROM verifications v JOIN attempts a ON a.id = v.attempt_id "
    "LEFT JOIN environments e ON e.id = v.environment_id "
    f"WHERE v.kind <> 'reproduce' AND NOT {_RETRACTED}",
)

_DEVICES = View(
    "run_devices",
    "For each run the device on which most of its attempts were judged under the current policy.",
    {"run_id": "The run.", "device": "The GPU's name, else the CPU's."},
    "SELECT x.run_id, x.device FROM (SELECT v.run_id, v.reached AS device, ROW_NUMBER() OVER "
    "(PARTITION BY v.run_id ORDER BY COUNT(DISTINCT v.attempt_id) DESC, v.reached) AS place "
    "FROM eligible_verifications v WHERE v.reached IS NOT NULL AND v.stale = 0 "
    "GROUP BY v.run_id, v.reached) AS x WHERE x.place = 1",
)

_REACHED = View(
    "sample_devices",
    "For each sample and each set of rules the devices on which it was judged under the current policy.",
    {
        "run_id": "The run.",
        "problem": "The row of `problems`.",
        "sample": "Number of the sample.",
        **{name: _COUNTING_COLUMNS[name] for name in _RULES},
        "device": "The GPU's name, else the CPU's.",
    },
    f"SELECT DISTINCT {_names('v', (*_SAMPLE, *_RULES))}, v.reached AS device "
    "FROM eligible_verifications v WHERE v.reached IS NOT NULL AND v.stale = 0",
)

_COUNTING = View(
    "counting_verifications",
    "For each attempt and setting the verification that counts. What reached no device counts on every "
    "device on which its sample was judged, else on that of most attempts of its run. Among those of an "
    "attempt and setting, verifications under the current policy go first, then those that judged the "
    "candidate, then those that are no screening, then the newest.",
    _COUNTING_COLUMNS,
    f"SELECT {_names('x', _COUNTING_COLUMNS)} FROM (SELECT y.*, ROW_NUMBER() OVER "
    f"(PARTITION BY y.attempt_id, {_names('y', _RULES)}, y.device ORDER BY y.place) AS first FROM "
    "(SELECT v.*, COALESCE(v.reached, s.device, d.device) AS device FROM eligible_verifications v "
    f"LEFT JOIN sample_devices s ON v.reached IS NULL AND {_same('v', 's', (*_SAMPLE, *_RULES))} "
    "LEFT JOIN run_devices d ON d.run_id = v.run_id) AS y) AS x WHERE x.first = 1",
)

_FLAT = View(
    "attempts_flat",
    "One row for each attempt and setting, with the verification that counts there. An attempt whose "
    "verifications are all retracted has no row.",
    {
        "attempt_id": "The attempt.",
        "run_id": "Its run.",
        "run": "The run's name.",
        "kind": "`generate`, `verify`, `import` or `tune`.",
        "model": "The model's name; `file` for candidates given as files.",
        "template": "Prompt template with its version.",
        "strategy": "The search strategy; NULL where no model was asked.",
        "problem_id": "The problem's id, such as `level1/23`.",
        "problem_sha256": "SHA-256 of the reference's source.",
        "suite": "The suite's name.",
        "level": "The level; NULL where there is none.",
        "problem": "The problem's name.",
        "sample": "Number of the sample, from 0.",
        "turn": "Turn within the sample, from 1.",
        "created": "When the attempt began (UTC, ISO 8601).",
        "status": "How the attempt ended; NULL while it is in progress.",
        **MEANINGS,
        "device": "The device; for attempts that reached none, where the sample or the run was judged.",
        "rigor": "`quick`, `standard` or `publish`; NULL without a verification.",
        "policy": "The policy by which it was judged; NULL without a verification.",
        "stale": "1 where `policy` is not the current one: such rows are left out of the scores.",
        "judged": "1 where the candidate was judged, as correct or not: the denominator of rates.",
        "built": "1 where the candidate was built, or needed no build.",
        "correct": "1 where the candidate is correct.",
        "error_class": "The arithmetic that the results could come from.",
        "flags": "The flags of a correct candidate, a JSON list.",
        "screening": "1 for a search's quick look: its times do not count.",
        "verification_id": "The verification that counts; NULL where there is none.",
        "speedup": "Baseline over candidate; NULL unless correct and measured.",
        "speedup_low": "Lower end of its 95 % interval.",
        "speedup_high": "Upper end of its 95 % interval.",
        "pace": "`faster`, `same`, `slower` or `unresolved`.",
        "counted_speedup": "The speedup that rates and means take: at most 1 where the pace is unresolved.",
        "ranking_speedup": "The number that ranks: the lower end, at most 1 where the pace is unresolved.",
        "candidate_ms": "Time of one call of the candidate.",
        "baseline_ms": "Time of one call of the baseline.",
        "compile_speedup": "Speedup against torch.compile; NULL where it was not measured.",
        "roofline_fraction": "The fraction of the roofline that was reached.",
        "tokens": "Prompt and completion tokens of its paid answers, as far as known.",
        "cost_usd": "US dollars of its paid answers, as far as known.",
    },
    "SELECT y.attempt_id, y.run_id, y.run, y.kind, y.model, y.template, y.strategy, y.problem_id, "
    "y.problem_sha256, y.suite, y.level, y.problem, y.sample, y.turn, y.created, y.status, "
    f"{_names('y', SETTING)}, y.rigor, y.policy, y.stale, y.judged, y.built, "
    "y.correct, y.error_class, y.flags, y.screening, y.verification_id, m.speedup, m.speedup_low, "
    "m.speedup_high, m.pace, "
    "CASE WHEN m.pace = 'unresolved' AND m.speedup > 1 THEN 1.0 ELSE m.speedup END AS counted_speedup, "
    "CASE WHEN m.pace = 'unresolved' AND m.speedup_low > 1 THEN 1.0 ELSE m.speedup_low END "
    "AS ranking_speedup, m.candidate_ms, m.baseline_ms, m.compile_speedup, m.roofline_fraction, "
    "(SELECT CAST(SUM(q.prompt_tokens + q.completion_tokens) AS BIGINT) FROM responses q "
    "WHERE q.attempt_id = y.attempt_id AND q.error IS NULL AND q.reused_from IS NULL) AS tokens, "
    "(SELECT SUM(q.cost_usd) FROM responses q WHERE q.attempt_id = y.attempt_id "
    "AND q.error IS NULL AND q.reused_from IS NULL) AS cost_usd FROM "
    "(SELECT x.*, "
    f"CASE WHEN x.status IS NULL OR x.status IN {_NO_JUDGEMENT} THEN 0 ELSE 1 END AS judged, "
    f"CASE WHEN x.status IS NULL OR x.status IN {_BEFORE_BUILT} THEN 0 ELSE 1 END AS built, "
    "CASE WHEN x.status = 'correct' THEN 1 ELSE 0 END AS correct FROM "
    "(SELECT a.id AS attempt_id, a.run_id, r.name AS run, r.kind, r.model, r.template, r.strategy, "
    "p.problem_id, p.sha256 AS problem_sha256, p.suite, p.level, p.name AS problem, a.sample, a.turn, "
    "a.created, COALESCE(c.status, a.status) AS status, COALESCE(c.device, s.device, d.device) AS device, "
    + "".join(f"COALESCE(c.{n}, r.{n}) AS {n}, " for n in _RULES)
    + "c.rigor, c.policy, "
    "COALESCE(c.stale, 0) AS stale, COALESCE(c.screening, 0) AS screening, c.error_class, c.flags, "
    "c.verification_id "
    "FROM attempts a JOIN runs r ON r.id = a.run_id JOIN problems p ON p.id = a.problem "
    "LEFT JOIN counting_verifications c ON c.attempt_id = a.id "
    "LEFT JOIN sample_devices s ON c.verification_id IS NULL AND s.run_id = a.run_id "
    f"AND s.problem = a.problem AND s.sample = a.sample AND {_same('s', 'r', _RULES)} "
    "LEFT JOIN run_devices d ON d.run_id = a.run_id "
    "WHERE c.verification_id IS NOT NULL OR NOT EXISTS "
    "(SELECT 1 FROM verifications v WHERE v.attempt_id = a.id AND v.kind <> 'reproduce')) AS x) AS y "
    "LEFT JOIN measurements m ON m.verification_id = y.verification_id AND y.correct = 1 AND y.screening = 0",
)

_SAMPLE_KEY = "run_id, problem_id, problem_sha256, sample"
_SAMPLES = View(
    "samples_flat",
    "One row for each finished sample and setting: the row of `attempts_flat` of the sample's fastest "
    "correct turn, or of its last turn where none is correct. Samples with a stale turn, trials of a tuner, "
    "and questions for plans are left out.",
    {
        **_FLAT.columns,
        "source": "`model` for answers and imported programs, `file` for candidates given as files.",
    },
    f"SELECT {_names('x', _FLAT.columns)}, x.source FROM (SELECT h.*, ROW_NUMBER() OVER "
    f"(PARTITION BY {_SAMPLE_KEY}, {', '.join(SETTING)} ORDER BY h.correct DESC, "
    "CASE WHEN h.ranking_speedup IS NULL THEN 0 ELSE h.ranking_speedup END DESC, h.turn DESC) AS place FROM "
    f"(SELECT g.*, MAX(g.attempt_stale) OVER (PARTITION BY {_SAMPLE_KEY}) AS any_stale FROM "
    "(SELECT f.*, CASE WHEN f.kind = 'verify' THEN 'file' ELSE 'model' END AS source, "
    "MIN(f.stale) OVER (PARTITION BY f.attempt_id) AS attempt_stale FROM attempts_flat f "
    "WHERE f.kind <> 'tune' AND COALESCE(f.status, '') <> 'plans') AS g) AS h "
    "WHERE h.any_stale = 0 AND h.stale = 0) AS x WHERE x.place = 1 AND x.status IS NOT NULL",
)

_BEST_COLUMNS = (
    *("problem_id", "problem_sha256", "suite", "level", *SETTING, "source", "attempt_id", "model"),
    *("run", "strategy", "speedup", "speedup_low", "speedup_high", "pace", "candidate_ms"),
    *("baseline_ms", "compile_speedup", "roofline_fraction", "error_class", "flags"),
)
_BEST = View(
    "best_by_problem",
    "The correct measured sample that ranks first, for each problem, setting and source.",
    {name: _SAMPLES.columns[name] for name in _BEST_COLUMNS},
    f"SELECT {_names('x', _BEST_COLUMNS)} FROM (SELECT s.*, ROW_NUMBER() OVER (PARTITION BY s.problem_id, "
    f"s.problem_sha256, {_names('s', SETTING)}, s.source ORDER BY s.ranking_speedup DESC, s.attempt_id) "
    "AS place FROM samples_flat s WHERE s.correct = 1 AND s.speedup IS NOT NULL) AS x WHERE x.place = 1",
)

_COUNTS = {
    "samples": "Finished samples.",
    "judged": "Samples that were judged, as correct or not: the denominator of the rates.",
    "correct": "Correct samples.",
    "rate": "correct / judged.",
    "pass_1": "The mean over the problems of correct / judged.",
    "problems": "Problems with a judged sample.",
    "solved": "Problems with a correct sample.",
    "fast_0_5": "Share of the judged samples that are correct with a counted speedup above 0.5.",
    "fast_0_8": "The same above 0.8.",
    "fast_1": "The same above 1.",
    "fast_1_5": "The same above 1.5.",
    "fast_2": "The same above 2.",
    "geometric_mean": "Geometric mean of the best counted speedup of each solved and measured problem.",
}


def _total(column: str) -> str:
    """A sum of integers as an integer, and not as a decimal number."""
    return f"CAST(SUM({column}) AS BIGINT)"


def _share(part: str, whole: str) -> str:
    """One sum by another, as a float; NULL where nothing was summed up."""
    return f"CAST(SUM({part}) AS DOUBLE PRECISION) / NULLIF(SUM({whole}), 0)"


def _scores(name: str, meaning: str, keys: dict[str, str]) -> View:
    """A view of rates by some columns of `samples_flat`: first by problem, then over the problems."""
    places = (*keys, *SETTING, "source")
    by, group = _names("s", places), _names("g", places)
    fast = {"fast_0_5": 0.5, "fast_0_8": 0.8, "fast_1": 1.0, "fast_1_5": 1.5, "fast_2": 2.0}
    inner = "".join(
        f"SUM(CASE WHEN s.correct = 1 AND s.counted_speedup > {p} THEN 1 ELSE 0 END) AS {column}, "
        for column, p in fast.items()
    )
    outer = "".join(f"{_share(f'g.{column}', 'g.judged')} AS {column}, " for column in fast)
    ranked = (
        f"SELECT s.*, ROW_NUMBER() OVER (PARTITION BY {by}, s.problem_id, s.problem_sha256 ORDER BY "
        "s.correct DESC, CASE WHEN s.ranking_speedup IS NULL THEN 0 ELSE s.ranking_speedup END DESC, "
        "s.attempt_id) AS rank_in_problem FROM samples_flat s"
    )
    by_problem = (
        f"SELECT {by}, COUNT(*) AS samples, SUM(s.judged) AS judged, SUM(s.correct) AS correct, {inner}"
        "MAX(CASE WHEN s.rank_in_problem = 1 AND s.correct = 1 THEN s.counted_speedup END) AS best "
        f"FROM ({ranked}) AS s GROUP BY {by}, s.problem_id, s.problem_sha256"
    )
    query = (
        f"SELECT {group}, {_total('g.samples')} AS samples, {_total('g.judged')} AS judged, "
        f"{_total('g.correct')} AS correct, {_share('g.correct', 'g.judged')} AS rate, "
        "AVG(CAST(g.correct AS DOUBLE PRECISION) / NULLIF(g.judged, 0)) AS pass_1, "
        "SUM(CASE WHEN g.judged > 0 THEN 1 ELSE 0 END) AS problems, "
        "SUM(CASE WHEN g.correct > 0 THEN 1 ELSE 0 END) AS solved, "
        f"{outer}EXP(AVG(CASE WHEN g.best > 0 THEN LN(g.best) END)) AS geometric_mean "
        f"FROM ({by_problem}) AS g GROUP BY {group}"
    )
    columns = {**keys, **{column: _SAMPLES.columns[column] for column in (*SETTING, "source")}, **_COUNTS}
    return View(name, meaning, columns, query)


_MODEL = {"model": "The model's name; `file` for candidates given as files."}
_STRATEGY = {"strategy": "The search strategy; NULL where no model was asked."}

VIEWS = (
    _ELIGIBLE,
    _DEVICES,
    _REACHED,
    _COUNTING,
    _FLAT,
    _SAMPLES,
    _BEST,
    _scores("model_scores", "Rates and means for each model and setting.", _MODEL),
    _scores(
        "run_scores",
        "Rates and means for each run and setting.",
        {"run_id": "The run.", "run": "The run's name.", **_MODEL, **_STRATEGY},
    ),
    _scores(
        "strategy_scores", "Rates and means for each strategy, model and setting.", {**_STRATEGY, **_MODEL}
    ),
)
"""In the order in which they are made: each refers to earlier ones only."""


def drop_views(connection: Connection) -> None:
    """Drops all views, so that a migration may change the tables that they read."""
    for view in reversed(VIEWS):
        connection.exec_driver_sql(f"DROP VIEW IF EXISTS {view.name}")


def make_views(connection: Connection) -> None:
    for view in VIEWS:
        connection.exec_driver_sql(view.statement)
