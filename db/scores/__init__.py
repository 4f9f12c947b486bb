"""Scores: the database's answers for leaderboard, pages and exports."""
