"""A chain of hashes over what is stored: docs/rationale/chain.md says what it proves."""
