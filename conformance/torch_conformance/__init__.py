"""A conformance suite for PyTorch devices.

Importing this package imports nothing else: the parent process must never import torch, and a device
process must be able to load the package by path into an environment in which it is not installed.
"""

__version__ = "0.1.0"
