"""The chapters of the device contract, one file each; a file put here is found by itself."""
