"""`python -m kernelproof` is the command `kernelproof`."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # where the user stands, and candidates may lie: a `cuda.py`, say
    from kernelproof.cli.app import main

    main()
