"""Runs: a model's answers to problems, asked for, judged and stored, and what is done with them later.

Begin with `batch` (a command's runs from beginning to end) and `conversation` (one sample: ask, extract,
verify, ask again). `planning` makes a batch of a configuration (`config`); `prompts` asks
`kernelproof.prompting` for the text of each question; `model_client` sends it within the `limits`;
`strategies` choose what is asked next; `gain_scheduler` says whose turn it is. `run_context` is what
conversations share, `events` what a display sees of them, `shutdown` how they end.

Candidates without a model: `candidates` (files), `imports` (published kernels), `tuning` (numbers in a
kernel). Verified again: `rejudge`, `reproduction` (audits, too), and `bundles` from strangers.
"""
