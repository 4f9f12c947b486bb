"""Where stages run: one verification, whole batches, reproductions. Holds keys and database; never torch."""
