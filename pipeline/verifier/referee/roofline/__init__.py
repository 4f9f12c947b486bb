"""The least time that a problem's data and arithmetic take on a device. Begin with `roofline`; `ceilings`
measures the device, `reads` counts what must be read.
"""
