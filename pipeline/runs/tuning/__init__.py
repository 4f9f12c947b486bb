"""A correct kernel made faster without a model: its numeric parameters are searched."""
