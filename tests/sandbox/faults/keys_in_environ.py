"""Looks for an API key in the environment of every process that it can see, the sandbox's first included."""
# expect: ok

import os
import pathlib
import re

seen = [os.fsencode(str(dict(os.environ)))]
for process in pathlib.Path("/proc").iterdir():
    if process.name.isdigit():
        for name in ("environ", "cmdline"):
            try:
                seen.append((process / name).read_bytes())
            except OSError as problem:
                print(problem)
# A whole key as driver.py makes them: its words alone stand on command lines of others.
raise SystemExit(any(re.search(rb"sk-canary-[0-9a-f]{16}", text) for text in seen))
