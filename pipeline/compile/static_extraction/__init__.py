"""Static build extraction: the builds that a source asks for, read from its text. Runs nothing of it."""
