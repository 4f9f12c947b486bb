"""A package of data: reference architectures, by level."""
