"""The store: SQLAlchemy models, migrations and queries. No torch.

Begin with `store`: `open_store` gives a `Store`, through which everything is read and written. `records`
writes the rows of an attempt (`add_verification`: those of a verification), `attempts` begins and ends
attempts, `loading` reads them back as the nouns of `views`. `queue` hands out the jobs of the evaluation
service (`JobQueue.take`), which callers submit through `evaluations`. `scores` computes the leaderboard by
the rule of `counting`.

`models` has the tables, `sql_views` the views for SQL, `migrations` their history.
`connection` opens a database and holds its transactions; what differs between SQLite and PostgreSQL is a
`DatabaseBackend` (`backend`, `sqlite`, `postgresql`).
"""
