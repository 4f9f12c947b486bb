"""Programs that somebody published, with what is claimed of them: read, stored as attempts, judged here."""
