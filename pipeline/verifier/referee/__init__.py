"""The trusted process: loads the problem, draws inputs, computes the truth, compares, keeps the clock."""
