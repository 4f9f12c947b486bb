"""Writes datasette's metadata: the columns' meanings, and canned queries.

``python -m kernelproof.db.datasette > datasette.json``, then
``datasette db/attempts.sqlite --metadata datasette.json``.
"""

from __future__ import annotations

import json
from inspect import getdoc
from typing import Any

from kernelproof.db.models import TABLES
from kernelproof.db.sql_views import VIEWS

DATABASE = "attempts"
"""The file's name without its ending, by which datasette knows it."""

QUERIES = {
    "models": (
        "Models, the most often correct first",
        "SELECT model, backend, size, device, numerics, purity, judged, correct, rate, pass_1, fast_1, "
        "fast_2, geometric_mean, solved, problems FROM model_scores ORDER BY source, rate DESC, fast_1 DESC",
    ),
    "best_kernels": (
        "The best kernel of each problem",
        "SELECT problem_id, backend, size, device, speedup, speedup_low, speedup_high, pace, "
        "compile_speedup, roofline_fraction, model, attempt_id FROM best_by_problem "
        "ORDER BY level, problem_id",
    ),
    "failures": (
        "How the attempts of a model ended",
        "SELECT status, COUNT(*) AS attempts FROM attempts_flat WHERE model = :model "
        "GROUP BY status ORDER BY attempts DESC",
    ),
    "best_over_turns": (
        "What more turns brought: correct samples and their best speedup, by turn",
        "SELECT model, strategy, turn, COUNT(*) AS attempts, SUM(correct) AS correct, "
        "MAX(ranking_speedup) AS best FROM attempts_flat WHERE kind = 'generate' AND stale = 0 "
        "GROUP BY model, strategy, turn ORDER BY model, strategy, turn",
    ),
    "cost": (
        "Tokens and US dollars by run",
        "SELECT run_id, run, model, COUNT(*) AS attempts, SUM(tokens) AS tokens, SUM(cost_usd) AS cost_usd, "
        "SUM(correct) AS correct FROM attempts_flat GROUP BY run_id, run, model ORDER BY run_id",
    ),
    "beside_roofline": (
        "Correct kernels with the most left to gain",
        "SELECT problem_id, device, attempt_id, model, speedup, candidate_ms, roofline_fraction "
        "FROM best_by_problem WHERE roofline_fraction IS NOT NULL ORDER BY roofline_fraction",
    ),
}


def metadata() -> dict[str, Any]:
    """The content of the file that `--metadata` names."""
    tables = {
        model.__tablename__: {
            "description": " ".join((getdoc(model) or "").split()),
            "columns": {column.name: column.comment for column in model.__table__.columns},
        }
        for model in TABLES
    }
    views = {view.name: {"description": view.meaning, "columns": view.columns} for view in VIEWS}
    queries = {name: {"title": title, "sql": sql} for name, (title, sql) in QUERIES.items()}
    return {
        "title": "kernelproof",
        "databases": {DATABASE: {"tables": {**tables, **views}, "queries": queries}},
    }


if __name__ == "__main__":
    print(json.dumps(metadata(), indent=2))
