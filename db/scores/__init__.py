"""Scores: the database's answers for the leaderboard, pages and exports.

Begin with `queries`: `ScoreQueries`, which is `store.scores`, has one method for each question, and loads
numpy only when asked. `leaderboard_query` answers: it reads a `ScoreTable` (`score_table`, stored as packed
rows of `packing`), has `selecting` choose the verification and the turn that count under the `filters`, and
computes `boards`, `groups`, comparisons (`comparing`) and `reported_results` with the intervals of
`statistics`. `records` has the results.
"""
