"""What is right: the problem's reference, the truth, and how far from it an answer may be."""
