"""Reads address 0."""
# expect: crash
# signal: SIGSEGV

import ctypes

ctypes.string_at(0)
