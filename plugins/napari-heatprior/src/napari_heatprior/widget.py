"""The widget: which layer, how much noise, which quality; preview, denoise, cancel."""

from __future__ import annotations

from functools import partial
from typing import Any

from magicgui.widgets import CheckBox, ComboBox, Container, FloatSpinBox, Label, ProgressBar, PushButton, create_widget
from napari.layers import Image
from napari.viewer import Viewer

from heatprior.presets import PRESETS, QUICK
from napari_heatprior.axes import NONE, Axes, channel_choices, finest, plane_choices, visible_part
from napari_heatprior.background import Background
from napari_heatprior.requests import Progress, Request, is_lazy
from napari_heatprior.results import result_layer

PREVIEW = "preview"


class DenoiseWidget(Container):
    """Denoise an image layer; every setting is that of `hp.denoise`."""

    def __init__(self, napari_viewer: Viewer) -> None:
        self._viewer = napari_viewer
        self.layer = create_widget(annotation=Image, name="layer", label="Layer")
        self.estimate = CheckBox(value=True, text="Estimate the noise")
        self.sigma = FloatSpinBox(value=25.0, min=1e-6, max=1e9, step=1.0, label="σ, in its units", enabled=False)
        self.quality = ComboBox(choices=tuple(PRESETS), value="default", label="Quality")
        self.channels = ComboBox(choices=lambda _: channel_choices(self.layer.value), label="Channels")
        self.plane = ComboBox(
            choices=lambda _: plane_choices(self.layer.value, self.channels.value),
            label="Image axes",
            tooltip="All other axes are a stack of images.",
        )
        self.noise_map = CheckBox(text="Noise map as a layer")
        self.error_map = CheckBox(text="Error map as a layer (twice the time)")
        self.preview = PushButton(text="Preview what is seen")
        self.run = PushButton(text="Denoise")
        self.cancel = PushButton(text="Cancel", enabled=False)
        self.progress = ProgressBar(min=0, max=100, value=0, label="", visible=False)
        self.status = Label(value="", label="")
        buttons = Container(widgets=[self.preview, self.run, self.cancel], layout="horizontal", labels=False)
        super().__init__(
            widgets=[
                self.layer, self.estimate, self.sigma, self.quality, self.channels, self.plane,
                self.noise_map, self.error_map, buttons, self.progress, self.status,
            ]
        )  # fmt: skip
        self._background = Background(self._tell_progress, self._done, self._failed, self._cancelled)
        self.layer.changed.connect(self._layer_changed)
        self.channels.changed.connect(lambda _: self.plane.reset_choices())
        self.estimate.changed.connect(lambda estimated: setattr(self.sigma, "enabled", not estimated))
        self.preview.changed.connect(lambda _: self._start(preview=True))
        self.run.changed.connect(lambda _: self._start(preview=False))
        self.cancel.changed.connect(lambda _: self._background.cancel())
        self._layer_changed()

    @property
    def request(self) -> Request:
        """The settings as they stand."""
        channels = self.channels.value
        axes = Axes(tuple(self.plane.value), None if channels == NONE else channels)
        return Request(
            axes,
            None if self.estimate.value else self.sigma.value,
            self.quality.value,
            self.noise_map.value,
            self.error_map.value,
        )

    # ---- settings

    def reset_choices(self, *_: Any) -> None:
        """Layers have come or gone: called by napari."""
        super().reset_choices()
        self.run.enabled = self.preview.enabled = self.layer.value is not None

    def _layer_changed(self) -> None:
        for choice in (self.channels, self.plane):
            choice.reset_choices()
        self.run.enabled = self.preview.enabled = self.layer.value is not None

    # ---- work

    def _start(self, *, preview: bool) -> None:
        layer = self.layer.value
        if layer is None:
            self.status.value = "Add an image layer first."
            return
        request, data = self.request, finest(layer)
        self._source, self._offset = layer, None
        if preview:
            wide, inside = visible_part(self._viewer, layer, request.axes)
            self._offset = tuple(w.start + i.start for w, i in zip(wide, inside, strict=True))
            request = Request(request.axes, request.sigma, QUICK)
            work = partial(_part, request, data, wide, inside)
        else:
            work = partial(request.run, data)
        self.status.value = ""
        self.progress.visible = True
        self.progress.value = 0
        self.cancel.enabled = True
        self._background.start(work)

    def _done(self, results: dict[str, Any]) -> None:
        self._ended("")
        kinds = {"denoised": PREVIEW} if self._offset is not None else {}
        for kind, values in results.items():
            layer = result_layer(self._source, kinds.get(kind, kind), values, self._offset)
            if layer.name in self._viewer.layers:
                self._viewer.layers.remove(layer.name)
            self._viewer.add_layer(layer)
        if is_lazy(results["denoised"]):
            self.status.value = "Lazy: each part is denoised when it is looked at."
        self.layer.value = self._source

    def _failed(self, error: BaseException) -> None:
        self._ended(str(error) or type(error).__name__)

    def _cancelled(self) -> None:
        self._ended("Cancelled.")

    def _ended(self, words: str) -> None:
        self.status.value = words
        self.progress.visible = False
        self.cancel.enabled = False

    def _tell_progress(self, fraction: float) -> None:
        self.progress.value = round(100 * fraction)


def _part(request: Request, data: Any, wide: tuple[slice, ...], inside: tuple[slice, ...], progress: Progress) -> Any:
    """Denoise a part that is on the screen; of a dask array only that part is computed."""
    part = data[wide]
    part = part.compute() if is_lazy(part) else part
    return {"denoised": request.run(part, progress)["denoised"][inside]}
