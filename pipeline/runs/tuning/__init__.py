"""A correct kernel made faster without a model: its numeric parameters are searched.

Begin with `search.tune`: trials, then the best beside the original. `template` finds the parameters in the
source.
"""
