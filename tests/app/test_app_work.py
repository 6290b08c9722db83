"""What is told of a picture that was denoised as a whole, and that long work can be ended on its way."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from heatprior import estimate_noise
from heatprior.app.jobs import CancelledByUserError
from heatprior.app.pictures import OpenedPicture
from heatprior.app.views import guess_noise
from heatprior.app.work import ESTIMATING, Choice, denoise_picture, estimate_picture
from heatprior.data.trials import photograph
from heatprior.noise import estimation
from heatprior.restoration.error_bars import PredictedPsnr


@pytest.mark.parametrize(
    ("psnr", "stderr", "told"), [(31.26, 0.4, "31.3 ± 0.4 dB"), (36.6, 1.7, None), (np.nan, np.nan, None)]
)
def test_a_quality_is_foretold_with_its_error_and_not_where_that_is_large(monkeypatch, tmp_path, psnr, stderr, told):
    pixels = np.zeros((8, 9), np.uint8)
    np.save(tmp_path / "a.npy", pixels)
    error, predicted = np.zeros((8, 9), np.float32), PredictedPsnr(psnr, stderr)
    done = SimpleNamespace(pixels=pixels, error=error, predicted=predicted)
    monkeypatch.setattr("heatprior.app.work.denoise", lambda *_, **__: done)
    outcome = denoise_picture(OpenedPicture("p", tmp_path / "a.npy", "a.npy"), Choice(error=True), lambda _: None)
    assert outcome.get("predicted") == told
    assert outcome["errors"]


@pytest.mark.parametrize(
    ("last", "done"),
    [(0.05, ["decision"]), (ESTIMATING, ["decision", "level"]), (2.0, ["decision", "level", "doubts"])],
)
def test_an_estimate_is_cancelled_between_its_parts(monkeypatch, tmp_path, last, done):
    """So that nobody waits for the rest of a huge picture: before levels are looked for, and before doubts are."""
    noise = 20 * np.random.default_rng(0).standard_normal((64, 64))
    np.save(tmp_path / "a.npy", (96 + 32 * np.sin(np.arange(64) / 9) + noise).astype(np.uint8))
    picture = OpenedPicture("p", tmp_path / "a.npy", "a.npy")
    looked = []
    monkeypatch.setattr(estimation, "doubts_of", lambda *_: looked.append("doubts") or [])
    level, decide = estimation.channel_noise, estimation.decide
    monkeypatch.setattr(estimation, "decide", lambda *a, **k: looked.append("decision") or decide(*a, **k))
    monkeypatch.setattr(estimation, "channel_noise", lambda *given: looked.append("level") or level(*given))

    def progress(fraction):
        if fraction >= last:
            raise CancelledByUserError

    with pytest.raises(CancelledByUserError) if last <= 1.0 else nullcontext():
        estimate_picture(picture, 0, "auto", progress)
    assert looked == done


def test_the_page_says_of_a_dark_frame_what_is_done_to_it(tmp_path):
    """Full scale is that of all frames: by its own, a dark frame would be another picture."""
    light = photograph()[..., 1].astype(float)
    frames = np.stack([16.0 * light[100:228, 100:228], 1.2 * light[300:428, 300:428]])
    frames += 10.0 * np.random.default_rng(0).standard_normal(frames.shape)
    np.save(tmp_path / "a.npy", np.rint(np.maximum(frames, 0.0)).astype(np.uint16))
    picture = OpenedPicture("p", tmp_path / "a.npy", "a.npy")
    whole = estimate_noise(picture.values)
    for frame in range(2):
        estimate_picture(picture, frame, "auto", lambda _: None)
        for report in (picture.noise[frame, "auto"].report, guess_noise(picture, frame, "auto").report):
            assert (report.models[0], report.white) == (whole.models[frame], whole.white)
