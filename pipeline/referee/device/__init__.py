"""The device: who may use it, whether it still computes right, how busy it is."""
