"""The sandboxed processes that candidate and baseline sit in, and the memory they share with us."""
