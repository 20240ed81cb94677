"""The commands of ``torch-conformance``: each turns options into calls and results into text."""
