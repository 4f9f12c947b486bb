"""Bundles: one file from which a stranger reproduces a number. docs/reference/bundle.md describes the format.

`writing` makes a bundle. `container` opens one that anybody may have made, `reading` checks it against its
manifest and takes an attempt out, and `contradictions` holds the parts of an attempt against each other.
Nothing in a bundle is run, imported or unpickled here.
"""
