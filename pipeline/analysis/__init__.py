"""What a verification says about a kernel: what it takes of an SM, how many fit, and what bounds it."""
