"""The protocol by which methods are compared, against its own words."""

from __future__ import annotations

from pathlib import Path

import numba
import numpy as np
import pytest
import tifffile
from PIL import Image
from skimage.metrics import peak_signal_noise_ratio, structural_similarity
from synthetic import folder_of_images

from heatprior import InvalidInputError
from heatprior.data import trials
from heatprior.errors import ImageFileError
from heatprior.images import image_files, read_grey
from heatprior.kernels.threads import limit_threads
from heatprior.restoration.evaluation import TrialResult, evaluate, summarise


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return image_files(folder_of_images(tmp_path / "photos", 3, (20, 24)))


def unchanged(noisy: np.ndarray, _: float) -> np.ndarray:
    return noisy


def test_the_noise_is_that_of_the_protocol(files: list[Path]):
    seen: list[tuple[np.ndarray, float]] = []

    def watch(noisy: np.ndarray, sigma: float) -> np.ndarray:
        seen.append((noisy, sigma))
        return noisy

    evaluate(files, watch, levels=[15, 100])
    warm_up, measured = [seen[0], seen[2]], [seen[1], *seen[3:]]
    assert len(warm_up) + len(measured) == len(seen) == 2 + 3 * 2
    for i, path in enumerate(files):
        clean = (read_grey(path) / 255).astype(np.float32)
        draw = np.random.default_rng(1000 + i).standard_normal(clean.shape)
        for k, level in enumerate([15, 100]):
            noisy, sigma = measured[2 * i + k]
            assert sigma == level / 255
            assert noisy.dtype == np.float32
            np.testing.assert_array_equal(noisy, (clean + level / 255 * draw).astype(np.float32))
            assert noisy.min() < 0  # neither clipped nor rounded


def test_quality_is_that_of_scikit_image_after_clipping():
    rng = np.random.default_rng(0)
    clean = rng.random((30, 40), dtype=np.float32)
    noisy = clean + 0.2 * rng.standard_normal(clean.shape).astype(np.float32)
    clipped = np.clip(noisy, 0, 1)
    psnr, ssim = trials.psnr(noisy, clean), trials.ssim(noisy, clean)
    assert psnr == pytest.approx(peak_signal_noise_ratio(clean, clipped, data_range=1))
    exact = (array.astype(np.float64) for array in (clean, clipped))  # which scikit-image computes in float64, as here
    assert ssim == pytest.approx(structural_similarity(*exact, data_range=1), rel=1e-12)
    assert psnr > peak_signal_noise_ratio(clean, noisy, data_range=1) + 0.1  # so that clipping is seen
    assert (trials.psnr(clean, clean), trials.ssim(clean, clean)) == (np.inf, 1.0)


def test_each_image_and_level_is_measured_once_and_reported(files: list[Path]):
    told: list[TrialResult] = []
    results = evaluate(files, unchanged, levels=[25, 50], report=told.append)
    assert told == results
    assert [(result.file, result.level) for result in results] == [(p.name, s) for p in files for s in (25, 50)]
    assert all(result.seconds_per_megapixel > 0 for result in results)


def test_a_summary_has_means_of_quality_and_the_median_of_time():
    results = [TrialResult("a", 25, 20.0, 0.5, 1.0), TrialResult("b", 25, 30.0, 0.6, 2.0)]
    results += [TrialResult("c", 25, 40.0, 0.7, 9.0), TrialResult("a", 15, 33.0, 0.9, 5.0)]
    assert summarise(results) == [(25, 30.0, pytest.approx(0.6), 2.0), (15, 33.0, 0.9, 5.0)]


def test_it_runs_in_one_thread_and_gives_the_others_back(files: list[Path]):
    seen: list[int] = []
    before = numba.get_num_threads()
    evaluate(files[:1], lambda noisy, _: seen.append(numba.get_num_threads()) or noisy, levels=[25])
    assert set(seen) == {1}
    assert numba.get_num_threads() == before

    def fail() -> None:
        with limit_threads(1):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert numba.get_num_threads() == before


def test_sixteen_bits_floats_and_colours_are_scaled_to_one(tmp_path: Path):
    values = np.random.default_rng(0).random((9, 8))
    tifffile.imwrite(tmp_path / "wide.tif", np.uint16(values * 65535))
    np.save(tmp_path / "float.npy", values)
    Image.fromarray(np.dstack([np.uint8(values * 255)] * 3)).save(tmp_path / "colour.png")
    seen: list[np.ndarray] = []
    evaluate(image_files(tmp_path), lambda noisy, _: seen.append(noisy) or noisy, levels=[1e-4])
    assert len(seen) == 4
    for noisy in seen:
        np.testing.assert_allclose(noisy, values, atol=1 / 255)


@pytest.mark.parametrize("levels", [[], [0], [-1], [np.nan], [np.inf]])
def test_levels_must_be_positive(files: list[Path], levels: list[float]):
    with pytest.raises(InvalidInputError, match="expected positive numbers"):
        evaluate(files, unchanged, levels=levels)


def test_images_that_cannot_be_measured_are_refused(tmp_path: Path):
    np.save(tmp_path / "small.npy", np.zeros((6, 9)))
    np.save(tmp_path / "degrees.npy", np.full((9, 9), 20.0))
    np.save(tmp_path / "missing.npy", np.full((9, 9), np.nan))
    (tmp_path / "zero.png").touch()
    expected = {"small.npy": "at least 7×7", "degrees.npy": "rescale", "missing.npy": "rescale", "zero.png": "empty"}
    for name, words in expected.items():
        with pytest.raises((InvalidInputError, ImageFileError), match=words):
            evaluate([tmp_path / name], unchanged)


def test_threads_beyond_the_cores_are_refused():
    with pytest.raises(InvalidInputError, match="expected 1 or more"), limit_threads(10**6):
        pass
