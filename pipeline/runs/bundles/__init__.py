"""Bundles: one file from which a stranger reproduces a number. docs/reference/bundle.md describes the format.

`writer` makes a bundle. `container` holds the format's limits and opens a file that anybody may have made;
`reader` checks it against its manifest, takes an attempt out and holds its parts against each other;
`signing` asks ssh-keygen. Nothing in a bundle is run, imported or unpickled here.
"""
