"""Writes the schema's page from the tables.

``python -m kernelproof.db.documentation > docs/reference/schema.md``
"""

from __future__ import annotations

from inspect import getdoc
from typing import Any

from sqlalchemy import Column

from kernelproof.db.connection import HEAD
from kernelproof.db.models import APPEND_ONLY, TABLES, Base
from kernelproof.db.sql_views import VIEWS, View

INTRODUCTION = """\
# The database

One SQLite file, `db/attempts.sqlite` in the workspace, in WAL mode with foreign keys. Several kernelproof
processes may write it at once: every write is one `BEGIN IMMEDIATE` transaction and is tried again for
two minutes when another process holds the lock. A killed process leaves whole transactions or nothing.
Where the directory cannot be written, `show` and `leaderboard` read the file as it is. If a write-ahead log
lies beside it, its rows are read too, or the command says why that cannot be done.

`--db postgresql+psycopg://...` keeps the same tables and views on a server
([how to](../guide/database.md#on-a-postgresql-server)). This page describes the file.

- **Each long text is stored once.** Prompts, raw responses, sources, build logs and process output are rows
  of `texts` under their SHA-256. Columns named `..._sha256` with a reference to `texts.sha256` point there.
  When an attempt is read, the hashes are computed again, and each altered text is named.
- **Evidence is only ever added.** Triggers refuse UPDATE and DELETE on
  {append_only}. A result that should not count is retracted by a row in `retractions`.
- **Stored before parsed.** The reply of a model's server is in `responses` before anything looks at it.
- **Migrations are append-only**, and each has a name. This page describes the tables after `{head}`.
  `alembic_version` (one row, `version_num`) names the newest migration that a file has. When a file is
  opened, the missing migrations are applied in one transaction. A file from a newer version is refused.
- **Files of other programs are not touched.** `PRAGMA application_id` of a file of kernelproof is 0x6b707266.

Times are UTC in ISO 8601; JSON columns hold JSON text, in which `Infinity` and `NaN` may occur.

[A chart](../charts.md#the-tables-of-the-database) shows how the tables refer to each other.
"""

VIEWS_INTRODUCTION = """\
## Views

The views are for `sqlite3`, pandas, DuckDB, datasette and other programs that speak SQL. They follow
[the rule of all readers](../rationale/counting.md); the current policy is that in `current_policy`. The
views of scores need SQLite 3.35 or later with its mathematical functions. The `sqlite3` of Python and that
of Debian have them.

```console
$ sqlite3 -readonly -box db/attempts.sqlite 'SELECT model, judged, rate, fast_1 FROM model_scores'
```

```python
import sqlite3

import pandas

attempts = pandas.read_sql("SELECT * FROM attempts_flat", sqlite3.connect("db/attempts.sqlite"))
```

With [datasette](https://datasette.io): `datasette db/attempts.sqlite --metadata datasette.json`. The
command `python -m kernelproof.db.datasette > datasette.json` writes that file. It holds the columns' meanings
and some queries.
"""


def schema_markdown() -> str:
    """The text of docs/reference/schema.md."""
    names = [f"`{name}`" for name in APPEND_ONLY]
    append_only = ", ".join(names[:-1]) + " and " + names[-1]
    parts = [INTRODUCTION.format(append_only=append_only, head=HEAD)]
    parts += map(_section, TABLES)
    return "\n".join([*parts, VIEWS_INTRODUCTION, *map(_view, VIEWS)])


def _view(view: View) -> str:
    rows = "".join(f"| `{name}` | {meaning} |\n" for name, meaning in view.columns.items())
    return f"### {view.name}\n\n{view.meaning}\n\n| column | meaning |\n|---|---|\n{rows}"


def _section(model: type[Base]) -> str:
    table = Base.metadata.tables[model.__tablename__]
    rows = "".join(f"| `{column.name}` | {_kind(column)} | {column.comment} |\n" for column in table.columns)
    return f"## {table.name}\n\n{getdoc(model)}\n\n| column | type | meaning |\n|---|---|---|\n{rows}"


def _kind(column: Column[Any]) -> str:
    """The column's type in words, with its role as a key."""
    words = _TYPES[type(column.type).__name__]
    if column.primary_key:
        words += ", primary key"
    words += "".join(f" → `{key.target_fullname}`" for key in column.foreign_keys)
    return words + (", may be NULL" if column.nullable else "")


_TYPES = {
    "BigInteger": "integer",
    "Boolean": "boolean",
    "Float": "number",
    "Json": "JSON",
    "LargeBinary": "bytes",
    "String": "text",
    "AnyText": "text",
}


if __name__ == "__main__":
    print(schema_markdown(), end="")
