"""Training patches are uniform over positions and symmetries, from images of any kind."""

import numpy as np
import pytest
from PIL import Image
from scipy.stats import chisquare
from synthetic import folder_of_images

from heatprior import InvalidInputError
from heatprior.data.datasets import PatchSource, folder_files, read_images, scale_by_type


def numbered_images():
    """Small images in which every pixel of every image has its own value."""
    shapes = ((4, 6), (3, 3), (7, 4))
    values = iter(np.random.default_rng(0).permutation(2**14).astype(np.uint16))
    return [np.fromiter((next(values) for _ in range(h * w)), np.uint16).reshape(h, w) for h, w in shapes]


def every_patch(images, size):
    """All patches in all symmetries, with how often a uniform draw finds each."""
    for image in images:
        for row in range(image.shape[0] - size + 1):
            for column in range(image.shape[1] - size + 1):
                patch = image[row : row + size, column : column + size] / 65535
                yield from (np.rot90(p, k) for p in (patch, patch.T) for k in range(4))


def counts_of(source, images, size, draws=40_000, seed=1):
    drawn = np.rint(65535 * source.draw(draws, np.random.default_rng(seed)).T).astype(np.uint16)
    seen = {}
    for patch in drawn:
        seen[patch.tobytes()] = seen.get(patch.tobytes(), 0) + 1
    keys = [np.rint(65535 * patch).astype(np.uint16).tobytes() for patch in every_patch(images, size)]
    assert len(set(keys)) == len(keys)
    assert set(seen) <= set(keys)
    return np.array([seen.get(key, 0) for key in keys])


def test_patches_are_uniform_over_all_positions_of_all_images_and_symmetries():
    images = numbered_images()
    source = PatchSource(images, 3)
    assert source.positions == 2 * 4 + 1 + 5 * 2
    assert chisquare(counts_of(source, images, 3)).pvalue > 1e-3


def test_a_source_that_draws_the_image_first_is_found_out():
    class ImageFirst(PatchSource):
        def draw(self, count, rng):
            parts = [PatchSource([image], 3).draw(count // 3, rng) for image in numbered_images()]
            return np.concatenate(parts, axis=1)

    images = numbered_images()
    assert chisquare(counts_of(ImageFirst(images, 3), images, 3)).pvalue < 1e-12


def test_draws_are_fixed_by_the_generator():
    source = PatchSource(numbered_images(), 3)
    first, same, other = (source.draw(50, np.random.default_rng(seed)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


GREY = np.arange(256, dtype=np.uint8).reshape(16, 16)
KINDS = {
    "uint8": GREY,
    "uint16": GREY.astype(np.uint16) * np.uint16(257),
    "float32": (GREY / 255).astype(np.float32),
    "float64": GREY / 255,
    "big-endian uint16": (GREY.astype(np.uint16) * np.uint16(257)).astype(">u2"),
}


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_every_image_has_the_scale_of_its_own_type(first, second):
    expected = PatchSource([GREY, GREY], 4).draw(200, np.random.default_rng(0))
    mixed = PatchSource([KINDS[first], KINDS[second]], 4).draw(200, np.random.default_rng(0))
    assert mixed.min() >= 0.0
    assert mixed.max() <= 1.0
    # Float32 has half a unit of 6e-8 at one.
    np.testing.assert_allclose(mixed, expected, rtol=0, atol=6e-8 if "float" in first + second else 1e-15)


def test_images_of_one_kind_stay_as_they_are():
    assert PatchSource([GREY], 3)._buffer.dtype == np.uint8
    assert PatchSource([GREY, KINDS["uint16"]], 3)._buffer.dtype == np.uint16


@pytest.mark.parametrize("kind", KINDS)
def test_images_in_unit_range_lie_between_zero_and_one(kind):
    image = scale_by_type(KINDS[kind])
    assert image.dtype == np.float32
    np.testing.assert_allclose(image, GREY / 255, rtol=0, atol=6e-8)


def test_the_digest_tells_sources_apart():
    images = numbered_images()
    changed = [image.copy() for image in images]
    changed[1][2, 2] += 1
    turned = [images[0].reshape(6, 4), *images[1:]]
    sources = [PatchSource(i, s) for i, s in ((images, 3), (changed, 3), (images, 2), (images[::-1], 3), (turned, 3))]
    assert len({source.digest for source in sources}) == 5
    assert PatchSource(numbered_images(), 3).digest == sources[0].digest


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.full((9, 9), 1.5), "image 1 has values from 1.5 to 1.5; images of floats must lie in"),
        (np.full((9, 9), -0.1), "rescale"),
        (np.full((9, 9), np.nan), "rescale"),
        (np.full((9, 9), np.inf), "rescale"),
        (np.zeros((9, 9), np.int32), "expected uint8, uint16, or floats"),
        (np.zeros((9, 9), bool), "expected uint8, uint16, or floats"),
        (np.zeros((9, 9, 3), np.uint8), r"expected a grey image \(H, W\)"),
    ],
)
def test_images_whose_scale_is_unknown_are_refused(image, message):
    with pytest.raises(InvalidInputError, match=message):
        PatchSource([np.zeros((9, 9), np.uint8), image], 3)


def test_images_smaller_than_a_patch_are_left_out_and_none_at_all_is_refused():
    assert PatchSource([GREY, GREY[:2]], 3).images == 1
    with pytest.raises(InvalidInputError, match=r"none of 2 images is as large as a patch of 17×17"):
        PatchSource([GREY, GREY], 17)


def test_a_folder_gives_its_images_in_order_and_lists_what_it_skips(tmp_path):
    folder = folder_of_images(tmp_path / "photos", 2)
    (folder / "deep" / "er").mkdir(parents=True)
    Image.fromarray(GREY).save(folder / "deep" / "er" / "colour.jpg")
    np.save(folder / "float.npy", GREY / 255)
    (folder / "empty.png").touch()
    Image.fromarray(GREY[:2]).save(folder / "small.tif")
    (folder / "notes.txt").write_text("no image")
    found = read_images(folder_files(folder), 3)
    assert [path.name for path in found.files] == ["00.png", "01.png", "colour.jpg", "float.npy"]
    assert [image.dtype.name for image in found.images] == ["uint8", "uint8", "uint8", "float64"]
    empty, small = found.skipped
    assert empty.endswith("empty.png: the file is empty; get a fresh copy")
    assert small.endswith("small.tif is too small: 16×2 pixels")


def test_a_folder_in_other_units_is_refused(tmp_path):
    np.save(tmp_path / "degrees.npy", 20.0 + np.zeros((9, 9)))
    with pytest.raises(InvalidInputError, match=r"degrees\.npy has values from 20 to 20; .* rescale them"):
        read_images(folder_files(tmp_path), 3)


def test_a_folder_without_usable_images_is_refused_with_the_first_reason(tmp_path):
    (tmp_path / "empty.png").touch()
    with pytest.raises(InvalidInputError, match=r"none of 1 images can be used: .* the file is empty"):
        read_images(folder_files(tmp_path), 3)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "does not exist; give a folder"),
        ("file.png", "is a file; give a folder"),
        ("empty", "holds no images; give a folder with files in .png"),
    ],
)
def test_what_is_no_folder_of_images_is_refused(tmp_path, name, message):
    (tmp_path / "file.png").touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInputError, match=message):
        folder_files(tmp_path / name)


@pytest.mark.parametrize("others", [1, 3])
@pytest.mark.parametrize("kind", ["uint8", "float32"])
def test_a_float_image_beyond_the_range_is_skipped_and_told_unless_most_are(tmp_path, kind, others):
    np.save(tmp_path / "0.npy", np.full((9, 9), 300.0, np.float32))
    for number in range(others):
        np.save(tmp_path / f"{1 + number}.npy", np.ones((9, 9), kind))
    found = read_images(folder_files(tmp_path), 3)
    assert len(found.images) == others
    (reason,) = found.skipped
    assert "0.npy has values from 300 to 300; images of floats must lie in [0, 1]: rescale them" in reason
    for number in range(others + 1):
        np.save(tmp_path / f"{10 + number}.npy", np.full((9, 9), 300.0, np.float32))
    with pytest.raises(InvalidInputError, match="rescale them"):
        read_images(folder_files(tmp_path), 3)


def test_noise_may_take_floats_beyond_the_range_but_no_further_than_it_goes(tmp_path):
    noisy = np.array([[-0.3, 1.4], [0.5, 0.5]]).repeat(4, axis=0).repeat(4, axis=1)
    np.save(tmp_path / "a.npy", noisy)
    assert PatchSource([noisy], 3, 0.1).positions == 36
    assert len(read_images([tmp_path / "a.npy"], 3, 0.1).images) == 1
    for sigma in (0.0, 0.01):
        with pytest.raises(InvalidInputError, match="rescale them"):
            PatchSource([noisy], 3, sigma)
        with pytest.raises(InvalidInputError, match="rescale them"):
            read_images([tmp_path / "a.npy"], 3, sigma)
