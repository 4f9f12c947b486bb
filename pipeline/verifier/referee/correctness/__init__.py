"""What is right: the truth in float64, how far outputs are off, and how far they may be."""
