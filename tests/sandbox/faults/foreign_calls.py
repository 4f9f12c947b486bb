"""Makes a system call by the x32 numbers, which a filter of 64-bit numbers would not know."""
# expect: crash
# signal: SIGSYS
# machine: x86_64

import ctypes

ctypes.CDLL(None).syscall(0x40000000 | 39)
