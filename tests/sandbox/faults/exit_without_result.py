"""Ends with success and leaves no result: exit 0 proves nothing."""
# expect: ok
