"""The canary: a fresh process that asks a GPU for results which are known. Torch, and nothing of ours but
`devices`."""
