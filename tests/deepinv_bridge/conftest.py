"""These tests need deepinv: `make test-deepinv`. Without it they are left out."""

import importlib.util

if importlib.util.find_spec("deepinv") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    import torch
    from without_torchvision import import_deepinv

    torch.set_num_threads(1)  # small tensors: threads would wait for each other
    import_deepinv()  # here, where warnings of its import are no errors
