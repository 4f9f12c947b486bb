"""Sets up an io_uring, whose operations no system-call filter sees."""
# expect: ok

import ctypes
import errno

IO_URING_SETUP = 425
libc = ctypes.CDLL(None, use_errno=True)
answer = libc.syscall(IO_URING_SETUP, 8, ctypes.create_string_buffer(256))
raise SystemExit(0 if answer < 0 and ctypes.get_errno() == errno.ENOSYS else f"io_uring_setup: {answer}")
