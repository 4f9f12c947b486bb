"""The one place that says which version this is."""

__version__ = "0.2.0"

POLICY = "14"
"""The policy by which candidates are judged: tolerances, checks, and what a measurement may claim. It is
raised where the same candidate may get another verdict or another speedup than before. Only results under one
policy are ranked together."""

VERIFIER = f"{__version__} policy:{POLICY}"
"""What a verification says of its verifier."""


def policy_of(verifier: str) -> str | None:
    """The policy in what a verification says of its verifier; None in records from before there were any."""
    named = [word.removeprefix("policy:") for word in verifier.split() if word.startswith("policy:")]
    return named[0] if named else None
