"""Both sides of a measurement, candidate and baseline: how each starts and how its failures are named."""
