"""Attempts in the formats of other tools: docs/guide/export.md, docs/reference/export.md. Begin at `formats`.

`columns` reads the rows, `formats` writes them as Parquet, JSON Lines, training pairs or KernelBench's files,
`huggingface` and `inspect_log` as data sets and logs. `files` gives a file its name only when it is whole.
`documentation` is the reference page.
"""
