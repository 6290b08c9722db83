"""FITS, DICOM and NIfTI: values in their units, and every word of their headers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from round_trip import assert_upside_down, noise, refuse_when_padded, rewritten

from heatprior import OutputFileError, images
from heatprior.errors import ImageFileError
from heatprior.images import read_image, write_image
from heatprior.images.model import Scale

PACKAGES = {"fits": "astropy", "dcm": "pydicom", "nii": "nibabel"}


def needs(package: str) -> Any:
    return pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed")


@pytest.mark.parametrize(("suffix", "package"), PACKAGES.items())
def test_a_package_that_is_not_there_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, package: str
):
    monkeypatch.setattr(images, "find_spec", lambda _: None)
    head = {"fits": b"SIMPLE  =", "dcm": bytes(128) + b"DICM", "nii": bytes(344) + b"n+1\0"}[suffix]
    (tmp_path / f"image.{suffix}").write_bytes(head + bytes(100))
    extra = {"fits": "fits", "dcm": "dicom", "nii": "nifti"}[suffix]
    with pytest.raises(ImageFileError, match=rf"needs {package}.*pip install 'heatprior\[{extra}\]'"):
        read_image(tmp_path / f"image.{suffix}")
    np.save(tmp_path / "image.npy", noise((9, 8), "uint8"))
    with pytest.raises(OutputFileError, match=f"needs {package}|from DICOM only"):
        write_image(tmp_path / f"new.{suffix}", noise((9, 8), "uint8"), like=read_image(tmp_path / "image.npy"))


@pytest.mark.parametrize(
    ("dtype", "slope", "intercept", "bits", "found"),
    [
        ("int16", 1.0, 0.0, None, "int16"),
        ("int16", 1.0, 32768.0, None, "uint16"),  # how FITS stores numbers without sign
        ("uint16", 1.0, -1024.0, 12, "int16"),  # Hounsfield units
        ("int16", 0.5, 3.0, None, "float32"),
        ("uint8", -1.0, 255.0, None, "float32"),
        ("int32", 0.1, 0.0, None, "float64"),
        ("float32", 2.0, 1.0, None, "float64"),
        ("float32", 1.0, 0.0, None, "float32"),
    ],
)
def test_values_in_units_are_stored_as_what_they_came_from(
    dtype: str, slope: float, intercept: float, bits: int | None, found: str
):
    scale = Scale.of(np.dtype(dtype), slope, intercept, bits)
    stored = noise((9, 8), dtype)
    if bits:
        stored %= 1 << bits
    values = scale.values(stored)
    assert values.dtype == scale.values_dtype == found
    np.testing.assert_allclose(values, stored.astype(float) * slope + intercept, rtol=1e-6)
    np.testing.assert_allclose(scale.encode(values), stored, rtol=1e-6 if dtype == "float32" else 0)
    for wrong in (0.0, np.nan, np.inf):
        with pytest.raises(ImageFileError, match="no scale"):
            Scale.of(np.dtype(dtype), wrong)


@needs("astropy")
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "uint32", "float32", "float64"])
@pytest.mark.parametrize("shape", [(9, 8), (3, 9, 8)])
def test_fits_of_every_type(tmp_path: Path, dtype: str, shape: tuple[int, ...]):
    from astropy.io import fits

    path, pixels = tmp_path / "image.fits", noise(shape, dtype)
    main = fits.PrimaryHDU(pixels)
    main.header["OBJECT"], main.header["EXPTIME"] = "M 31", 12.5
    table = fits.BinTableHDU.from_columns([fits.Column("a", "E", array=np.arange(5.0))])
    fits.HDUList([main, table]).writeto(path, checksum=True)
    image, new = rewritten(path)
    np.testing.assert_array_equal(image.pixels, pixels)
    assert image.pixels.dtype == dtype
    assert_upside_down(new, image)
    with fits.open(new, checksum=True) as after, fits.open(path) as before:  # a wrong sum is a warning: an error
        np.testing.assert_array_equal(after[0].data, np.flip(pixels, -2))
        np.testing.assert_array_equal(after[1].data["a"], before[1].data["a"])
        kept = [card for card in before[0].header.cards if card.keyword not in ("CHECKSUM", "DATASUM")]
        assert [tuple(card) for card in after[0].header.cards if card.keyword not in ("CHECKSUM", "DATASUM")] == [
            tuple(card) for card in kept
        ]


@needs("astropy")
def test_fits_in_units_with_blanks(tmp_path: Path):
    from astropy.io import fits

    path, stored = tmp_path / "image.fits", noise((9, 8), "int16") // 2
    stored[2, 3] = -32768
    main = fits.PrimaryHDU(stored)
    main.header["BSCALE"], main.header["BZERO"], main.header["BLANK"] = 0.25, 10.0, -32768
    main.writeto(path)
    image = read_image(path)
    assert np.isnan(image.pixels[2, 3])
    assert image.pixels[0, 0] == stored[0, 0] * 0.25 + 10
    write_image(tmp_path / "new.fits", image.pixels + np.float32(0.25), like=image)
    with fits.open(tmp_path / "new.fits", do_not_scale_image_data=True) as after:
        np.testing.assert_array_equal(after[0].data, np.where(stored == -32768, stored, stored + 1))


@needs("astropy")
def test_fits_from_other_files_and_what_is_refused(tmp_path: Path):
    from astropy.io import fits

    np.save(tmp_path / "image.npy", noise((9, 8), "float32"))
    image, new = rewritten(tmp_path / "image.npy", tmp_path / "new.fits")
    assert_upside_down(new, image)
    np.save(tmp_path / "colour.npy", noise((9, 8, 3), "float32"))
    with pytest.raises(OutputFileError, match=r"FITS cannot hold colours; choose \.tif or \.npy"):
        rewritten(tmp_path / "colour.npy", tmp_path / "colour.fits")
    two = fits.HDUList([fits.PrimaryHDU(noise((9, 8), "uint8")), fits.ImageHDU(noise((9, 8), "uint8"))])
    two.writeto(tmp_path / "two.fits")
    fits.PrimaryHDU().writeto(tmp_path / "none.fits")
    for name, count in (("two", 2), ("none", 0)):
        with pytest.raises(ImageFileError, match=f"holds {count} images; save one per file"):
            read_image(tmp_path / f"{name}.fits")


@needs("astropy")
@pytest.mark.parametrize(
    ("card", "value"), [("NAXIS   ", "1000"), ("NAXIS   ", "999999999999"), ("NAXIS1  ", "-32"), ("PCOUNT  ", "-9999")]
)
def test_headers_over_which_astropy_would_not_end_are_refused(tmp_path: Path, card: str, value: str):
    from astropy.io import fits

    path = tmp_path / "image.fits"
    fits.HDUList([fits.PrimaryHDU(), fits.ImageHDU(noise((9, 8), "int16"))]).writeto(path)
    read_image(path)
    content = path.read_bytes()
    place = content.rindex(f"{card}= ".encode())  # of the second part
    path.write_bytes(content[: place + 10] + f"{value:>20}".encode() + content[place + 30 :])
    with pytest.raises(ImageFileError, match=f"its {card.strip()} is {value}; expected no less than 0"):
        read_image(path)


def save_dicom(path: Path, stored: np.ndarray, **tags: Any) -> None:
    import pydicom
    from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

    about = pydicom.Dataset()
    about.file_meta = pydicom.dataset.FileMetaDataset()
    about.file_meta.TransferSyntaxUID = tags.pop("syntax", ExplicitVRLittleEndian)
    about.SOPClassUID = about.file_meta.MediaStorageSOPClassUID = CTImageStorage
    about.SOPInstanceUID = about.file_meta.MediaStorageSOPInstanceUID = generate_uid()
    colour = stored.ndim == 3 and stored.shape[-1] == 3
    frames = stored.shape[0] if stored.ndim == 3 and not colour else None
    about.Rows, about.Columns = stored.shape[1:] if frames else stored.shape[:2]
    about.SamplesPerPixel = 3 if colour else 1
    about.PhotometricInterpretation = "RGB" if colour else "MONOCHROME2"
    about.BitsAllocated = 8 * stored.itemsize
    about.BitsStored = tags.pop("BitsStored", about.BitsAllocated)
    about.HighBit = about.BitsStored - 1
    about.PixelRepresentation = int(stored.dtype.kind == "i")
    about.PatientName = "Doe^Jane"
    if frames:
        about.NumberOfFrames = frames
    if colour:
        about.PlanarConfiguration = 0
    for name, value in tags.items():
        setattr(about, name, value)
    about.PixelData = stored.tobytes() + b"\0" * (stored.nbytes % 2)
    about["PixelData"].VR = "OW"
    about.save_as(path, enforce_file_format=True)


@needs("pydicom")
@pytest.mark.parametrize(
    ("dtype", "shape"), [("uint16", (9, 8)), ("int16", (3, 9, 8)), ("uint8", (9, 7)), ("uint8", (9, 8, 3))]
)
def test_dicom_keeps_its_header(tmp_path: Path, dtype: str, shape: tuple[int, ...]):
    import pydicom

    path, stored = tmp_path / "image.dcm", noise(shape, dtype)
    save_dicom(path, stored)
    image, new = rewritten(path)
    np.testing.assert_array_equal(image.pixels, stored)
    assert_upside_down(new, image)
    before, after = pydicom.dcmread(path), pydicom.dcmread(new)
    np.testing.assert_array_equal(after.pixel_array, stored[::-1] if image.colour else stored[..., ::-1, :])
    changed = {"PixelData", "SOPInstanceUID", "ImageType"}
    kept = {e.keyword: e.value for e in before if e.keyword not in changed}
    assert {e.keyword: e.value for e in after if e.keyword not in changed} == kept
    assert after.ImageType[0] == "DERIVED"
    assert after.SOPInstanceUID != before.SOPInstanceUID


@needs("pydicom")
def test_dicom_in_hounsfield_units_and_in_fractions(tmp_path: Path):
    import pydicom

    stored = noise((9, 8), "uint16") % 4096
    save_dicom(tmp_path / "ct.dcm", stored, BitsStored=12, RescaleSlope=1, RescaleIntercept=-1024)
    image, new = rewritten(tmp_path / "ct.dcm")
    assert image.pixels.dtype == np.int16
    np.testing.assert_array_equal(image.pixels, stored.astype(int) - 1024)
    np.testing.assert_array_equal(pydicom.dcmread(new).pixel_array, stored[::-1])
    save_dicom(tmp_path / "pet.dcm", stored, BitsStored=12, RescaleSlope=0.125, RescaleIntercept=-3)
    image, new = rewritten(tmp_path / "pet.dcm")
    np.testing.assert_array_equal(image.pixels, stored * np.float32(0.125) - 3)
    np.testing.assert_array_equal(pydicom.dcmread(new).pixel_array, stored[::-1])
    beyond = np.full((9, 8), 1e6, np.float32)  # what cannot be stored becomes the most that can
    write_image(tmp_path / "most.dcm", beyond, like=image)
    assert (pydicom.dcmread(tmp_path / "most.dcm").pixel_array == 4095).all()


@needs("pydicom")
@pytest.mark.parametrize(("value", "limit"), [(-2000, -1990), (-1990, -2000)])
def test_dicom_may_pad_by_all_numbers_of_a_range(tmp_path: Path, value: int, limit: int):
    stored = noise((9, 8), "uint8").astype(np.int16)
    stored[:2], stored[2, :3] = -2000, (-1990, -1995, -1989)
    padding = {"PixelPaddingValue": value, "PixelPaddingRangeLimit": limit}
    save_dicom(tmp_path / "ct.dcm", stored, **padding)
    image = read_image(tmp_path / "ct.dcm")
    np.testing.assert_array_equal(np.isnan(image.values()), stored <= -1990)
    write_image(tmp_path / "new.dcm", image.pixels + np.int16(1), like=image)
    np.testing.assert_array_equal(
        read_image(tmp_path / "new.dcm").pixels, np.where(stored <= -1990, stored, stored + 1)
    )


@needs("pydicom")
def test_dicom_is_written_from_dicom_only(tmp_path: Path):
    np.save(tmp_path / "image.npy", noise((9, 8), "uint8"))
    with pytest.raises(OutputFileError, match="DICOM is written from DICOM only; choose"):
        rewritten(tmp_path / "image.npy", tmp_path / "new.dcm")
    save_dicom(tmp_path / "image.dcm", noise((9, 8), "uint8"))
    rewritten(tmp_path / "image.dcm", tmp_path / "new.png")


def sample_of_pydicom(name: str) -> Path:
    import pydicom.data

    return Path(pydicom.data.__file__).parent / "test_files" / name


@needs("pydicom")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("MR_small_bigendian.dcm", "64×64 pixels, grey, 16 bits, signed"),
        ("MR_small_expb.dcm", "64×64 pixels, grey, 16 bits, signed"),
        ("rtdose_expb.dcm", "15 images of 10×10 pixels, grey, 32 bits"),
        ("SC_rgb_small_odd_big_endian.dcm", "3×3 pixels, colour, 8 bits"),
        ("SC_rgb_rle_16bit.dcm", "100×100 pixels, colour, 16 bits"),
        ("SC_rgb_rle_16bit_2frame.dcm", "2 images of 100×100 pixels, colour, 16 bits"),
        ("SC_rgb_rle_32bit.dcm", "100×100 pixels, colour, 32 bits"),
        ("SC_ybr_full_422_uncompressed.dcm", "100×100 pixels, colour, 8 bits"),
        ("image_dfl.dcm", "512×512 pixels, grey, 8 bits"),
        ("SC_rgb_jpeg.dcm", "256×256 pixels, colour, 8 bits"),  # whose elements are not encoded as it says
    ],
)
def test_dicom_of_either_byte_order_of_more_bits_deflated_and_with_fewer_colours(tmp_path: Path, name: str, kind: str):
    import pydicom

    image, new = rewritten(sample_of_pydicom(name), tmp_path / "new.dcm")
    assert image.describe() == kind
    assert_upside_down(new, image)
    stored = pydicom.dcmread(new).pixel_array
    np.testing.assert_array_equal(stored, image.pixels[..., ::-1, :, :] if image.colour else image.pixels[..., ::-1, :])


@needs("pydicom")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("MR_small_jpeg_ls_lossless.dcm", r"JPEG-LS Lossless .* pip install 'pylibjpeg\[all\]', or save it without"),
        ("JPEG-lossy.dcm", r"JPEG Extended .* pip install 'pylibjpeg\[all\]', or save it without"),
        ("rtplan.dcm", "it holds no pixels"),
        ("liver_1frame.dcm", "expected 8, 16 or 32"),
    ],
)
def test_dicom_that_is_valid_but_not_for_us_is_not_accused(name: str, reason: str):
    with pytest.raises(ImageFileError, match=reason) as refusal:
        read_image(sample_of_pydicom(name))
    for accusation in ("damaged", "fresh copy", "exhaust", "Traceback", "Error"):
        assert accusation not in str(refusal.value)


@needs("pydicom")
def test_deflated_dicom_that_inflates_to_more_than_memory_holds_is_refused(tmp_path: Path, monkeypatch):
    from pydicom.uid import DeflatedExplicitVRLittleEndian

    save_dicom(tmp_path / "image.dcm", np.zeros((2000, 1000), np.uint16), syntax=DeflatedExplicitVRLittleEndian)
    assert read_image(tmp_path / "image.dcm").pixels.shape == (2000, 1000)
    monkeypatch.setattr("heatprior.images.dicom.available_memory", lambda: 3_000_000)
    with pytest.raises(ImageFileError, match="inflates to more than memory holds"):
        read_image(tmp_path / "image.dcm")


@needs("nibabel")
@pytest.mark.parametrize("suffix", ["nii", "nii.gz"])
@pytest.mark.parametrize(
    ("dtype", "slope"), [("int16", 1.0), ("uint8", 1.0), ("float32", 1.0), ("int16", 0.5), ("float64", 1.0)]
)
def test_nifti_keeps_its_header_and_scale(tmp_path: Path, suffix: str, dtype: str, slope: float):
    import nibabel

    path, stored = tmp_path / f"image.{suffix}", noise((8, 9, 4, 2), dtype)
    affine = np.diag([1.5, 2.0, 3.0, 1.0])
    volume = nibabel.Nifti1Image(stored, affine)
    volume.header["descrip"] = b"a brain"
    volume.header.set_slope_inter(slope, 7.0 if slope != 1 else 0.0)
    volume.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", b"said"))
    volume.to_filename(path)
    image, new = rewritten(path, tmp_path / f"new.{suffix}")
    assert image.pixels.shape == (2, 4, 9, 8)
    assert image.pixels.dtype == (dtype if slope == 1 else "float32")
    assert_upside_down(new, image)
    before, after = nibabel.load(path), nibabel.load(new)
    assert after.header == before.header
    assert [extension.get_content() for extension in after.header.extensions] == [b"said"]
    np.testing.assert_array_equal(after.affine, affine)
    assert (after.dataobj.slope, after.dataobj.inter) == (before.dataobj.slope, before.dataobj.inter)
    np.testing.assert_array_equal(after.dataobj.get_unscaled(), stored[:, ::-1])


@needs("nibabel")
def test_nifti_from_other_files_and_what_is_refused(tmp_path: Path):
    import nibabel

    np.save(tmp_path / "image.npy", noise((5, 9, 8), "float32"))
    image, new = rewritten(tmp_path / "image.npy", tmp_path / "new.nii.gz")
    assert_upside_down(new, image)
    nibabel.Nifti1Image(noise((8, 9), "int16"), np.eye(4)).to_filename(tmp_path / "image.nii")
    content = bytearray((tmp_path / "image.nii").read_bytes())
    content[42:46] = b"\xff\x7f\xff\x7f"  # its first two sides
    (tmp_path / "image.nii").write_bytes(content)
    with pytest.raises(ImageFileError, match="declares"):
        read_image(tmp_path / "image.nii")


@pytest.mark.parametrize("suffix", ["fits", "dcm", "nii", "nii.gz"])
def test_noise_under_such_a_name_is_refused_in_one_line(tmp_path: Path, suffix: str):
    path = tmp_path / f"image.{suffix}"
    for head in (b"", b"SIMPLE  =", bytes(128) + b"DICM", bytes(344) + b"n+1\0", b"\x1f\x8b\x08\0"):
        path.write_bytes(head + np.random.default_rng(0).bytes(5000))
        with pytest.raises(ImageFileError) as refusal:
            read_image(path)
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("suffix", "package"), [("fits", "astropy"), ("nii", "nibabel"), ("nii.gz", "nibabel"), ("dcm", "pydicom")]
)
def test_a_small_image_in_a_huge_file_is_refused_before_it_is_read(tmp_path: Path, suffix: str, package: str):
    pytest.importorskip(package)
    path, pixels = tmp_path / f"image.{suffix}", noise((64, 48), "int16")
    if suffix == "dcm":
        save_dicom(path, pixels)
    else:
        np.save(tmp_path / "image.npy", pixels)
        write_image(path, pixels, like=read_image(tmp_path / "image.npy"))
    refuse_when_padded(path)


@needs("pydicom")
@pytest.mark.parametrize("bits", [12, 16])
@pytest.mark.parametrize("intercept", [0, -1024])
def test_whole_numbers_that_dicom_cannot_store_become_the_nearest_that_it_can(
    tmp_path: Path, bits: int, intercept: int
):
    """Air in a CT is the least that can be stored: half of its noise was below, and the result was not written."""
    import pydicom

    save_dicom(tmp_path / "ct.dcm", np.zeros((9, 8), np.uint16), BitsStored=bits, RescaleIntercept=intercept)
    image = read_image(tmp_path / "ct.dcm")
    for value, stored in ((-2000, 0), (5000, min(5000 - intercept, 2**bits - 1))):
        pixels = np.full(image.pixels.shape, max(value, np.iinfo(image.pixels.dtype).min), image.pixels.dtype)
        write_image(tmp_path / "new.dcm", pixels, like=image)
        assert (pydicom.dcmread(tmp_path / "new.dcm").pixel_array == stored).all()


@needs("astropy")
def test_numbers_that_fits_cannot_store_become_the_nearest_that_it_can(tmp_path: Path):
    from astropy.io import fits

    for dtype in ("int16", "float32"):
        main = fits.PrimaryHDU(np.ones((9, 8), dtype))
        main.header["BSCALE"], main.header["BZERO"] = 1.0 if dtype == "int16" else 0.3, 100.0
        main.writeto(tmp_path / f"{dtype}.fits")
        image = read_image(tmp_path / f"{dtype}.fits")
        write_image(tmp_path / f"new-{dtype}.fits", image.pixels - 50_000, like=image)
        after = read_image(tmp_path / f"new-{dtype}.fits").pixels
        np.testing.assert_allclose(after, -32668 if dtype == "int16" else image.pixels - 50_000, rtol=1e-6)
