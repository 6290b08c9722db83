"""These tests need deepinv: `make test-deepinv`. Without it they are left out (this folder itself is no deepinv)."""

import importlib.util

_deepinv = importlib.util.find_spec("deepinv")
if _deepinv is None or _deepinv.origin is None:
    collect_ignore_glob = ["test_*.py"]
else:
    import torch

    torch.set_num_threads(1)  # small tensors: threads would wait for each other
    # Beside a CPU build of torch the compiled part of torchvision does not load, and its import fails on two operators
    # that it describes all the same; deepinv needs neither.
    for _name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{_name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import deepinv  # noqa: F401  here, where warnings of its import are no errors
