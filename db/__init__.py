"""The store: SQLAlchemy models, migrations, queries. No torch."""
