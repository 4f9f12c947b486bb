"""Search strategies without a model and without a GPU: ``python -m benchmarks.search``.

A landscape stands for one problem: it says how fast each point of a small space of programs is, and its best
is known. A synthetic proposer stands for the model: it writes first programs, repairs, and changes what it is
shown, and fails as often as real models did. The strategies are the ones that `generate` runs, told of
results as `generate` tells them. All of them get the same number of questions (or of tokens), and the same
seeds.
"""
