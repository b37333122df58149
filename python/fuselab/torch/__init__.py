"""The parts of the PyTorch backend (torch_backend.py)."""
