"""These tests need torch: `make test-torch`. Without it they are left out (this folder itself is no torch)."""

import importlib.util

_torch = importlib.util.find_spec("torch")
if _torch is None or _torch.origin is None:
    collect_ignore_glob = ["test_*.py"]
else:
    import torch

    torch.set_num_threads(1)  # small tensors: threads would wait for each other
