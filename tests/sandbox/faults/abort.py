"""Ends as a failed assertion in C++ does."""
# expect: crash
# signal: SIGABRT

import os

os.abort()
