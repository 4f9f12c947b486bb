"""The problem, loaded, and the inputs that are drawn for it."""
