"""Prints what would recolour, retitle, overwrite or reorder a reader's terminal."""
# expect: ok
# stdout: plain red text, title, link, reversed

import sys

sys.stdout.buffer.write(
    b"plain \x1b[31mred\x1b[0m text\x1b]0;owned\x07, ti\x1b[2Jtle, \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\, "
    b"\xe2\x80\xaerev\x08\x07ersed\x00\x9b\n".replace(b"\x9b", b"\xc2\x9b")
)
