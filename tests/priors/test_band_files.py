"""Files of priors of whole images: what is saved comes back, and what is no prior is refused."""

import numpy as np
import pytest
from whole_images import convolutional_prior, wavelet_prior

from heatprior import PriorFileError, load
from heatprior.store import PriorFile, read_prior_file, write_prior_file

PRIORS = {"convolutional": convolutional_prior(2, 3), "wavelet": wavelet_prior(2, 2, 1)}
every_kind = pytest.mark.parametrize("kind", PRIORS)


@every_kind
def test_a_prior_comes_back(kind, tmp_path):
    prior = PRIORS[kind]
    prior.save(tmp_path / "a.safetensors")
    loaded = load(tmp_path / "a.safetensors")
    assert type(loaded) is type(prior)
    y = np.random.default_rng(0).standard_normal((8, 12))
    np.testing.assert_allclose(loaded.log_prob(y, 0.3), prior.log_prob(y, 0.3), rtol=1e-5)
    np.testing.assert_allclose(loaded.denoise(y, 0.3), prior.denoise(y, 0.3), rtol=0, atol=1e-5)


@every_kind
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("norms", np.ones(2, np.float32), "each band needs one of each"),
        ("norms", -1.0, "norms are -1"),
        ("log_weights", 0.0, "sum to"),
        ("log_weights", np.zeros(3, np.float32), r"not \(J, L\)"),
        ("reach", np.zeros(2), r"not \(J, L\) and \(1,\)"),
        ("reach", np.zeros(1), "reach is 0"),
    ],
)
def test_a_file_that_holds_no_prior_is_refused(kind, name, value, message, tmp_path):
    path = tmp_path / "a.safetensors"
    PRIORS[kind].save(path)
    contents = read_prior_file(path)
    tensors = {key: np.array(array) for key, array in contents.tensors.items()}
    tensors[name] = np.full_like(tensors[name], value) if np.isscalar(value) else value
    write_prior_file(path, PriorFile(kind, tensors, {}))
    with pytest.raises(PriorFileError, match=message):
        load(path)


@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [
        ("convolutional", "tiling", np.array([2], np.int32), "scales and orientations"),
        ("convolutional", "tiling", np.array([2, 0], np.int32), "expected 1 to 64"),
        ("wavelet", "levels", np.array([2], np.int32), "levels and splits"),
        ("wavelet", "levels", np.array([99, 0], np.int32), "1 to 12 levels"),
        ("wavelet", "scaling", np.array([1.0, 1.0]), "not orthonormal"),
    ],
)
def test_bands_that_make_no_sense_are_refused(kind, name, value, message, tmp_path):
    path = tmp_path / "a.safetensors"
    PRIORS[kind].save(path)
    tensors = {**read_prior_file(path).tensors, name: value}
    write_prior_file(path, PriorFile(kind, tensors, {}))
    with pytest.raises(PriorFileError, match=message):
        load(path)
