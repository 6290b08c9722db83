"""What deepinv asks of any denoiser: its own tests (tests/test_models.py of deepinv 0.5.0), written anew for ours."""

import deepinv
import numpy as np
import pytest
import torch
from skimage import data
from skimage.transform import resize

import heatprior as hp
import heatprior.deepinv as hd
import heatprior.torch as ht
from heatprior import InvalidInputError

NAMES = ("patch7", "mixture", "wavelet-density")
_made = {}


def denoiser(name, steps=None):
    return _made.setdefault((name, steps), hd.Denoiser(name, steps))


def photographs(side=64):
    """Two photographs, the first of them twice, (3, 3, side, side)."""
    images = [resize(image, (side, side), anti_aliasing=True) for image in (data.astronaut()[:400, 100:], data.cat())]
    x = torch.tensor(np.stack([images[0], images[1], images[0]]), dtype=torch.float32)
    return x.permute(0, 3, 1, 2).contiguous()


every_denoiser = pytest.mark.parametrize("name", NAMES)


@every_denoiser
@pytest.mark.parametrize("size", [(3, 37, 31), (1, 37, 31)])
def test_result_has_the_shape_of_the_image(name, size):
    """deepinv: test_denoiser_color, test_denoiser_gray, test_denoiser_1_channel, at 37×31."""
    physics = deepinv.physics.Denoising(deepinv.physics.GaussianNoise(0.2))
    x = torch.ones(1, *size)
    assert denoiser(name)(physics(x), 0.2).shape == x.shape


@every_denoiser
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("channels", [1, 3])
def test_sigma_comes_in_every_shape(name, batch, channels):
    """deepinv: test_denoiser_sigma_gray, test_denoiser_sigma_color, at 16×16; its optimisers hand on [[0.1]]."""
    x = torch.ones(batch, channels, 16, 16)
    y = deepinv.physics.GaussianNoise()(x, sigma=torch.tensor(0.1))
    same = denoiser(name)(y, 0.1)
    for sigma in (
        torch.tensor(0.1),
        torch.tensor([[0.1]]),
        torch.full((batch,), 0.1),
        torch.full((batch, 1, 1, 1), 0.1),
    ):
        torch.testing.assert_close(denoiser(name)(y, sigma), same, rtol=1e-4, atol=1e-5)
    each = torch.linspace(0.1, 0.3, batch)
    assert denoiser(name)(y, each).shape == x.shape


@every_denoiser
def test_noise_is_removed(name):
    """deepinv: test_denoiser_perf, which asks of its BM3D and EPLL gains of 2.5, 6 and 6.5 dB (on other images)."""
    x, sigma = photographs(), torch.tensor([0.05, 0.1, 0.2])
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(123))
    y = x + sigma.view(-1, 1, 1, 1) * noise
    psnr = deepinv.metric.PSNR(max_pixel=1)
    gain = psnr(denoiser(name)(y, sigma), x) - psnr(y, x)
    assert (gain > torch.tensor([2.5, 5.0, 6.5])).all(), gain


@every_denoiser
def test_a_map_of_noise_levels_helps_and_a_constant_one_changes_nothing(name):
    """deepinv: test_denoiser_perf_noise_map; of grey images, which take a third of the time."""
    x, levels = photographs().mean(1, keepdim=True), torch.tensor([0.05, 0.1, 0.2]).view(3, 1, 1, 1)
    constant = levels.expand(3, 1, 64, 64)
    varying = constant * torch.exp(-(torch.arange(-32, 32) ** 2) / 25**2)
    y = x + varying * torch.randn(x.shape, generator=torch.Generator().manual_seed(123))
    psnr = deepinv.metric.PSNR(max_pixel=1)
    assert (psnr(denoiser(name)(y, varying), x) > psnr(denoiser(name)(y, constant), x)).all()
    assert torch.equal(denoiser(name)(y, constant), denoiser(name)(y, levels))


@pytest.mark.parametrize("mode", ["real_imag", "abs_angle"])
def test_complex_images_through_the_wrapper_of_deepinv(mode):
    """deepinv: the end of test_denoiser_perf_noise_map."""
    x = photographs()
    y = x + 0.1 * torch.randn(x.shape, generator=torch.Generator().manual_seed(123))
    wrapped = deepinv.models.ComplexDenoiserWrapper(denoiser=denoiser("patch7"), mode=mode)
    psnr = deepinv.metric.PSNR()
    clean = wrapped(y.to(torch.complex64), sigma=0.1)
    assert (psnr(clean, x.to(torch.complex64)) > psnr(y, x)).all()


def test_the_posterior_mean_of_a_patch_and_of_a_whole_image_is_exact():
    patches = torch.rand(2, 1, 8, 8, dtype=torch.float64)
    exact = ht.load("mixture").posterior(patches.flatten(1), 0.1).mean.view_as(patches)
    torch.testing.assert_close(denoiser("mixture", "posterior")(patches, 0.1), exact)
    images = torch.rand(2, 1, 64, 64, dtype=torch.float64)
    exact = ht.load("wavelet-density").posterior(images[:, 0], 0.1).mean[:, None]
    torch.testing.assert_close(denoiser("wavelet-density", "posterior")(images, 0.1), exact)


def test_the_score_prior_of_deepinv_has_the_exact_score_of_the_wavelet_prior():
    module, x = ht.load("wavelet-density"), torch.rand(2, 3, 64, 64, dtype=torch.float64)
    sigma = torch.tensor([0.1, 0.3], dtype=torch.float64).view(2, 1, 1, 1)
    found = deepinv.optim.ScorePrior(hd.Denoiser(module, "posterior")).score(x, sigma)
    wanted = -hd.Prior(module).grad(x, sigma)
    torch.testing.assert_close(found, wanted, rtol=1e-7, atol=1e-7)
    averaged = deepinv.optim.ScorePrior(hd.Denoiser(module, 1)).score(x, sigma)
    assert (averaged - wanted).abs().max() > 1e-2 * wanted.abs().max()  # the mean over shifts is another function


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InvalidInputError, match=r"^steps is 'median'; expected None, 1 or 'posterior'$"):
        hd.Denoiser("patch7", "median")
    with pytest.raises(
        InvalidInputError, match=r"^the images are 9×9 pixels but the posterior mean of this prior is th"
    ):
        denoiser("mixture", "posterior")(torch.zeros(1, 1, 9, 9), 0.1)
    with pytest.raises(
        InvalidInputError, match=r"^sigma has shape \(1, 1, 64, 64\); a density has one noise level for"
    ):
        denoiser("wavelet-density", "posterior")(torch.zeros(1, 1, 64, 64), torch.ones(64, 64))


@pytest.mark.parametrize("channels", [1, 3])
def test_noise_levels_are_estimated_as_deepinv_does(channels):
    """deepinv: test_noise_level_estimators; one number for each image, near the truth, of the type of the images."""
    x = photographs()[:2, :channels]
    sigma = torch.tensor([0.05, 0.15])
    y = x + sigma[:, None, None, None] * torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    found = hd.NoiseEstimator()(y)
    assert found.shape == (2,)
    assert found.dtype == y.dtype
    torch.testing.assert_close(found, sigma, rtol=0.15, atol=0.0)
    assert not torch.allclose(hd.NoiseEstimator()(x), sigma, rtol=0.15)
    with pytest.raises(InvalidInputError, match="expected \\(B, C, H, W\\)"):
        hd.NoiseEstimator()(y[0])


def test_colours_are_denoised_as_the_library_denoises_them():
    y = photographs()[:1] + 0.1 * torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    expected = hp.denoise(y[0].numpy(), 0.1, prior="mixture", channel_axis=0, white=1.0)
    np.testing.assert_array_equal(denoiser("mixture")(y, 0.1)[0].numpy(), expected)
    alone = torch.cat([denoiser("mixture")(y[:, c : c + 1], 0.1) for c in range(3)], dim=1)
    assert (alone[0].numpy() - expected).std() > 1e-3  # channel by channel is another result
