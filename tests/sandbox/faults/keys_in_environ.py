"""Looks for an API key in the environment of every process that it can see, the sandbox's first included."""
# expect: ok

import os
import pathlib

seen = [os.fsencode(str(dict(os.environ)))]
for process in pathlib.Path("/proc").iterdir():
    if process.name.isdigit():
        for name in ("environ", "cmdline"):
            try:
                seen.append((process / name).read_bytes())
            except OSError as problem:
                print(problem)
raise SystemExit(any(b"canary" in text for text in seen))
