"""Triton kernels. Nothing here is imported before it is called."""
