"""A package of data: prompt templates."""
