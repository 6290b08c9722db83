"""What is told of a picture that was denoised as a whole, and that long work can be ended on its way."""

from contextlib import nullcontext

import numpy as np
import pytest

from heatprior.app.choices import Choice
from heatprior.app.denoising import Done, _of_all
from heatprior.app.opened import OpenedPicture
from heatprior.app.turns import CancelledByUserError
from heatprior.app.work import ESTIMATING, denoise_whole, estimate
from heatprior.noise import estimation
from heatprior.restoration.predicted_quality import PredictedPsnr


@pytest.mark.parametrize(
    ("psnr", "stderr", "told"), [(31.26, 0.4, "31.3 ± 0.4 dB"), (36.6, 1.7, None), (np.nan, np.nan, None)]
)
def test_a_quality_is_foretold_with_its_error_and_not_where_that_is_large(monkeypatch, tmp_path, psnr, stderr, told):
    pixels = np.zeros((8, 9), np.uint8)
    np.save(tmp_path / "a.npy", pixels)
    done = Done(pixels, np.zeros((8, 9), np.float32), PredictedPsnr(psnr, stderr), {})
    monkeypatch.setattr("heatprior.app.work.denoise_by_choice", lambda *_: done)
    outcome = denoise_whole(OpenedPicture("p", tmp_path / "a.npy", "a.npy"), Choice(error=True), lambda _: None)
    assert outcome.get("predicted") == told
    assert outcome["errors"]


def test_the_quality_of_a_stack_is_that_of_all_its_frames():
    both = _of_all([PredictedPsnr(30.0, 0.1), PredictedPsnr(30.0, 0.3)])
    assert both.psnr == pytest.approx(30.0)
    assert both.stderr == 0.3
    assert _of_all([PredictedPsnr(20.0, 0.1), PredictedPsnr(90.0, 0.1)]).psnr == pytest.approx(23.01, abs=0.01)
    assert np.isnan(_of_all([PredictedPsnr(30.0, 0.1), PredictedPsnr(np.nan, np.nan)]).psnr)


@pytest.mark.parametrize(("last", "done"), [(0.3, []), (ESTIMATING, ["level"]), (2.0, ["level", "doubts"])])
def test_an_estimate_is_cancelled_between_its_parts(monkeypatch, tmp_path, last, done):
    """So that nobody waits for the rest of a huge picture: before one level is looked for, and before doubts are."""
    np.save(tmp_path / "a.npy", np.tile((96 + 32 * np.sin(np.arange(64) / 9)).astype(np.uint8), (48, 1)))
    picture = OpenedPicture("p", tmp_path / "a.npy", "a.npy")
    looked = []
    monkeypatch.setattr("heatprior.app.work.doubts_of", lambda *_: looked.append("doubts") or [])
    level = estimation.channel_noise
    monkeypatch.setattr(estimation, "channel_noise", lambda *given: looked.append("level") or level(*given))

    def progress(fraction):
        if fraction >= last:
            raise CancelledByUserError

    with pytest.raises(CancelledByUserError) if last <= 1.0 else nullcontext():
        estimate(picture, 0, progress)
    assert looked == done
