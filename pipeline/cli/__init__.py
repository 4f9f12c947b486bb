"""The command line: thin commands, one file each."""
