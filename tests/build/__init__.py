"""Tests of pipeline.build."""
