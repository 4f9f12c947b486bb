"""Attempts in the formats of other tools: docs/guide/export.md, docs/reference/export.md. Begin at `formats`.

`columns` reads the rows, `formats` writes them as Parquet, JSON Lines, training pairs, KernelBench's files,
data sets of Hugging Face and logs of inspect-ai. `files` gives a file its name only when it is whole.
`documentation` is the reference page.
"""
