"""Make docs/napari.png: the sample in a real viewer, denoised, with its error map below it.

Run under a display: xvfb-run -s "-screen 0 1600x1200x24" python take_screenshot.py [FILE]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import napari
from PIL.Image import Dither, Quantize, fromarray
from qtpy.QtWidgets import QApplication

SIZE = (1280, 860)
PATIENCE = 600.0  # seconds


def main(path: Path) -> None:
    """Denoise the sample, and save what the window shows."""
    viewer = napari.Viewer(show=True)
    viewer.window.resize(*SIZE)
    _, widget = viewer.window.add_plugin_dock_widget("napari-heatprior", "Denoise")
    (noisy,) = viewer.open_sample("napari-heatprior", "noisy-photograph")
    widget.error_map.value = True
    widget.run.changed.emit(True)
    end = time.monotonic() + PATIENCE
    while len(viewer.layers) < 3 and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.02)
    for layer in viewer.layers:
        layer.visible = layer is not noisy
    grid = viewer.canvas.grid if hasattr(viewer, "canvas") else viewer.grid
    grid.shape, grid.enabled = (2, 1), True
    viewer.layers.selection.active = viewer.layers[f"{noisy.name} (denoised)"]
    viewer.reset_view()
    for _ in range(50):
        QApplication.processEvents()
        time.sleep(0.02)
    shown = fromarray(viewer.screenshot(canvas_only=False, flash=False)).convert("RGB")
    shown.quantize(256, method=Quantize.MEDIANCUT, dither=Dither.NONE).save(path, optimize=True)
    viewer.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "docs" / "napari.png")
