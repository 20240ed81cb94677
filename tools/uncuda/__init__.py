"""Find CUDA assumptions in PyTorch code, cure them with patches, and prove the cure."""
