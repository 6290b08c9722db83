"""deepinv without torchvision: names where it imports them, which refuse to be used.

deepinv imports torchvision for its plots, data sets and rotations, none of which a denoiser or a prior touches. The
builds of torchvision bring a build of torch with several gigabytes of CUDA; this is what is left of it without them.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

NAMES = {
    "torchvision": [],
    "torchvision.utils": ["make_grid", "save_image"],
    "torchvision.transforms": ["CenterCrop", "Compose", "InterpolationMode", "Resize", "ToTensor"],
    "torchvision.transforms.functional": ["crop", "rotate"],
    "torchvision.datasets": [],
    "torchvision.datasets.folder": ["IMG_EXTENSIONS"],
    "torchvision.datasets.utils": ["download_and_extract_archive"],
}


class Missing:
    """What stands where a name of torchvision would."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise RuntimeError("torchvision is not installed here; this stands for it, so that deepinv can be imported")


def import_deepinv() -> Any:
    """deepinv; if torchvision is missing, with nothing of it but the names that deepinv imports."""
    if importlib.util.find_spec("torchvision") is None:
        for name, members in NAMES.items():
            module = sys.modules[name] = ModuleType(name)
            for member in members:
                setattr(module, member, type(member, (Missing,), {}))
            parent, _, own = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], own, module)
    import deepinv

    return deepinv
