"""Ends with an exit code of its own."""
# expect: error
# exit code: 3

raise SystemExit(3)
