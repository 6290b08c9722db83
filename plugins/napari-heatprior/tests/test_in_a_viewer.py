"""The widget in a real viewer: run, cancel, preview, scale kept, stacks, colours, dask, bad input, samples."""

import numpy as np
import pytest
from napari_heatprior.axes import Axes
from napari_heatprior.requests import Request
from napari_heatprior.widget import DenoiseWidget

import heatprior as hp

PATIENCE = 120_000  # ms


def noisy(shape, seed=0, sigma=20.0):
    y, x = np.mgrid[: shape[-2], : shape[-1]] / 32
    clean = 120 + 50 * np.sin(2 * x + y) * np.cos(1.5 * y)
    return np.clip(clean + np.random.default_rng(seed).normal(0, sigma, shape), 0, 255).astype(np.uint8)


@pytest.fixture
def viewer(make_napari_viewer):
    return make_napari_viewer(show=True)  # what is not drawn has no visible part


@pytest.fixture
def widget(viewer):
    _, widget = viewer.window.add_plugin_dock_widget("napari-heatprior", "Denoise")
    assert isinstance(widget, DenoiseWidget)
    yield widget
    widget._background.cancel()


@pytest.fixture
def wait(qtbot, widget):
    def until_it_has_ended():
        qtbot.waitUntil(lambda: not widget._background.is_running, timeout=PATIENCE)

    return until_it_has_ended


def given(widget, sigma=20.0, quality="fast"):
    widget.estimate.value = False
    widget.sigma.value = sigma
    widget.quality.value = quality


def test_a_layer_is_denoised_as_by_the_library_and_lies_where_it_lay(viewer, widget, wait):
    pixels = noisy((64, 80))
    viewer.add_image(
        pixels, name="cells", scale=(0.5, 0.25), translate=(3, 4), units=("µm", "µm"), axis_labels=("y", "x"), gamma=0.8
    )
    given(widget)
    widget.run.changed.emit(True)
    wait()
    layer = viewer.layers["cells (denoised)"]
    np.testing.assert_array_equal(layer.data, hp.denoise(pixels, 20.0, quality="fast"))
    source = viewer.layers["cells"]
    for name in ("scale", "translate", "units", "axis_labels", "gamma", "contrast_limits"):
        np.testing.assert_array_equal(getattr(layer, name), getattr(source, name))
    assert widget.status.value == ""


def test_the_noise_is_estimated_and_shown_as_a_layer_and_so_is_the_error(viewer, widget, wait):
    viewer.add_image(noisy((64, 80)), name="a")
    widget.quality.value = "fast"
    widget.noise_map.value = widget.error_map.value = True
    widget.run.changed.emit(True)
    wait()
    assert widget.status.value == ""
    errors = viewer.layers["a (error)"].data
    assert errors.shape == (64, 80)
    assert 1 < np.median(errors) < 20  # less than the noise, and not nothing
    levels = viewer.layers["a (noise)"].data
    assert levels.shape == (64, 80)
    assert 14 < np.median(levels) < 27  # 20 was added
    assert "a (denoised)" in viewer.layers


def test_a_stack_is_denoised_plane_by_plane_along_the_axes_that_were_chosen(viewer, widget, wait):
    stack = noisy((3, 48, 56))
    viewer.add_image(np.moveaxis(stack, 0, 1), name="stack", scale=(1, 5, 1), axis_labels=("y", "t", "x"))
    given(widget)
    widget.plane.value = (0, 2)
    widget.run.changed.emit(True)
    wait()
    result = viewer.layers["stack (denoised)"]
    np.testing.assert_array_equal(np.moveaxis(result.data, 1, 0), hp.denoise(stack, 20.0, quality="fast"))
    np.testing.assert_array_equal(result.scale, (1, 5, 1))


def test_channels_are_an_axis_or_the_colours_of_a_picture(viewer, widget, wait):
    colours = noisy((3, 40, 48))
    viewer.add_image(colours, name="axis", axis_labels=("c", "y", "x"))
    given(widget)
    widget.channels.value = 0
    widget.run.changed.emit(True)
    wait()
    expected = hp.denoise(colours, 20.0, quality="fast", channel_axis=0)
    np.testing.assert_array_equal(viewer.layers["axis (denoised)"].data, expected)
    viewer.add_image(np.moveaxis(colours, 0, -1), name="rgb", rgb=True)
    widget.layer.value = viewer.layers["rgb"]
    widget.run.changed.emit(True)
    wait()
    assert viewer.layers["rgb (denoised)"].rgb
    np.testing.assert_array_equal(np.moveaxis(viewer.layers["rgb (denoised)"].data, -1, 0), expected)


def test_the_preview_lies_over_the_part_that_is_seen(viewer, widget, wait, qtbot):
    layer = viewer.add_image(noisy((2, 200, 240)), name="large", scale=(3, 0.5, 0.5), translate=(0, 7, 9))
    viewer.dims.set_point(0, 3.0)
    camera = viewer.scene.camera if hasattr(viewer, "scene") else viewer.camera
    camera.center = (0, 7 + 50, 9 + 60)
    camera.zoom *= 4
    qtbot.waitUntil(lambda: 0 < np.ptp(layer.corner_pixels[:, 1]) < 120, timeout=PATIENCE)
    given(widget)
    widget.preview.changed.emit(True)
    wait()
    assert widget.status.value == ""
    part = viewer.layers["large (preview)"]
    assert part.data.shape[0] == 1
    assert part.data.size < layer.data[0].size / 2
    begin = np.rint(layer.world_to_data(part.data_to_world((0, 0, 0)))).astype(int)
    assert begin[0] == 1  # the plane that is looked at
    place = tuple(slice(b, b + n) for b, n in zip(begin, part.data.shape, strict=True))
    seen = layer.data[place].astype(float)
    assert 10 < np.std(seen - part.data) < 25  # it is that part, without its noise
    widget.preview.changed.emit(True)
    wait()
    assert sum("preview" in other.name for other in viewer.layers) == 1


def test_work_is_cancelled_and_can_be_begun_again(viewer, widget, wait, qtbot):
    viewer.add_image(noisy((700, 700)), name="long")
    given(widget, quality="best")
    widget.run.changed.emit(True)
    qtbot.waitUntil(lambda: widget.progress.value > 0, timeout=PATIENCE)
    assert widget.cancel.enabled
    widget.cancel.changed.emit(True)
    wait()
    assert widget.status.value == "Cancelled."
    assert [layer.name for layer in viewer.layers] == ["long"]
    viewer.add_image(noisy((40, 40)), name="short")
    widget.layer.value = viewer.layers["short"]
    widget.quality.value = "fast"
    widget.run.changed.emit(True)
    wait()
    assert "short (denoised)" in viewer.layers


def test_a_dask_layer_stays_lazy(viewer, widget, wait, qtbot):
    da = pytest.importorskip("dask.array")
    pixels, read = noisy((60, 64, 64)), []

    def block(values, block_info=None):
        read.append(block_info[0]["chunk-location"])
        return values

    lazy = da.from_array(pixels, chunks=(1, 64, 64)).map_blocks(
        block, dtype=np.uint8, meta=np.empty((0, 0, 0), np.uint8)
    )
    viewer.add_image(lazy, name="lazy", contrast_limits=(0, 255))
    given(widget)
    read.clear()
    widget.run.changed.emit(True)
    wait()
    result = viewer.layers["lazy (denoised)"].data
    assert hasattr(result, "dask")
    assert len({place[0] for place in read}) < 60  # squares spread over it and what is shown, not all of it
    qtbot.waitUntil(lambda: viewer.layers["lazy (denoised)"].loaded, timeout=PATIENCE)
    read.clear()
    np.testing.assert_array_equal(result[2].compute(), hp.denoise(pixels[2], 20.0, quality="fast"))
    assert {place[0] for place in read} == {2}  # nor anything else again for each plane


def test_the_noise_of_a_dask_layer_is_found_once():
    da = pytest.importorskip("dask.array")
    pixels = noisy((3, 3, 64, 64))
    lazy = da.from_array(pixels, chunks=(1, 3, 64, 64))
    request = Request(Axes((2, 3), 1), quality="fast")
    levels = hp.estimate_noise(lazy, channel_axis=1)
    assert 15 < levels.sigma[0, 0, 0, 0] < 25  # 20 was added
    expected = hp.denoise(pixels, levels.sigma[0, :, 0, 0], quality="fast", channel_axis=1)
    np.testing.assert_array_equal(request.run(lazy)["denoised"][1].compute(), expected[1])


def test_what_cannot_be_denoised_is_told_in_one_line(viewer, widget, wait):
    viewer.add_image(noisy((40, 40)), name="fine")
    given(widget, sigma=1e-6)
    widget.error_map.value = True
    viewer.layers["fine"].data = np.full((40, 40), np.nan, np.float32)
    widget.run.changed.emit(True)
    wait()
    assert "\n" not in widget.status.value
    assert len(widget.status.value) > 10
    assert len(viewer.layers) == 1
    assert widget.run.enabled
    assert not widget.cancel.enabled


def test_without_a_layer_nothing_can_be_begun(widget):
    assert not widget.run.enabled
    widget.run.changed.emit(True)
    assert "layer" in widget.status.value


def test_samples_open_with_their_scale(viewer):
    (photograph,) = viewer.open_sample("napari-heatprior", "noisy-photograph")
    (stack,) = viewer.open_sample("napari-heatprior", "noisy-stack")
    assert photograph.data.dtype == np.uint8
    np.testing.assert_array_equal(stack.scale, (2, 0.5, 0.5))
    assert [str(unit) for unit in stack.units] == ["micrometer"] * 3


def test_axes_come_back_in_their_order():
    data = np.zeros((3, 40, 5, 44), np.uint8)
    axes = Axes((1, 3), 0)
    ordered, channel_axis = axes.in_order(data)
    assert ordered.shape == (5, 3, 40, 44)
    assert channel_axis == -3
    assert axes.back(ordered).shape == data.shape
    assert Request(axes).sigma is None
