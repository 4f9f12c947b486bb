"""`python -m kernelproof` is the command `kernelproof`."""

from kernelproof.cli.app import main

if __name__ == "__main__":
    main()
