"""Scores: what the leaderboard, pages and exports ask the database."""
