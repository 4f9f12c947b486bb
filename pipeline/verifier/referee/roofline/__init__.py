"""The least time that a problem's data and arithmetic take on a device."""
