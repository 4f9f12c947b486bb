"""What is asked of a candidate before it is timed."""
