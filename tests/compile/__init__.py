"""Tests of pipeline.compile."""
