"""Valid files, as small as they can be, of every format and layout: what is mutated."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms, PngImagePlugin

HEIGHT, WIDTH = 16, 20
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


class Seed(NamedTuple):
    """A file that is read without complaint: how its name ends, and what it holds."""

    suffix: str
    content: bytes


def noisy(shape: tuple[int, ...] = (HEIGHT, WIDTH), dtype: str = "uint8") -> NDArray[Any]:
    """A slope with noise on it: compressible, but not constant."""
    slope = np.add.outer(np.arange(shape[-2 if shape[-1] > 4 else -3]), np.arange(shape[-1 if shape[-1] > 4 else -2]))
    values = slope if shape[-1] > 4 else slope[..., None]
    values = 0.3 + 0.01 * values + np.random.default_rng(0).normal(0, 0.03, shape)
    if np.dtype(dtype).kind == "f":
        return values.astype(dtype)
    return (np.clip(values, 0, 1) * np.iinfo(dtype).max).astype(dtype)


def _saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def _exif() -> bytes:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "a description"
    return exif.tobytes()


def _modes(*modes: str) -> Iterator[Image.Image]:
    colour = Image.fromarray(noisy((HEIGHT, WIDTH, 3)))
    yield from (colour.convert(mode) for mode in modes)


def png() -> Iterator[bytes]:
    """All kinds that Pillow writes, those of 16 bits, and one with every chunk that is kept."""
    from heatprior.images import read_image, write_image  # noqa: PLC0415 (slow to import)

    for image in _modes("1", "L", "LA", "P", "RGB", "RGBA"):
        yield _saved(image, "PNG")
    yield _saved(next(_modes("P")), "PNG", transparency=3, bits=4)
    texts = PngImagePlugin.PngInfo()
    texts.add_text("Title", "a slope")
    texts.add_text("Comment", "packed " * 9, zip=True)
    texts.add_itxt("Author", "nobody", "en", "Autor")
    about = {"pnginfo": texts, "icc_profile": PROFILE, "dpi": (72, 72), "exif": _exif()}
    yield _saved(next(_modes("RGB")), "PNG", **about)
    with TemporaryDirectory() as folder:
        path = Path(folder, "image.npy")
        for shape in ((HEIGHT, WIDTH), (HEIGHT, WIDTH, 3), (HEIGHT, WIDTH, 4)):
            np.save(path, noisy(shape, "uint16"))
            write_image(path.with_suffix(".png"), read_image(path).pixels, like=read_image(path))
            yield path.with_suffix(".png").read_bytes()


def jpeg() -> Iterator[bytes]:
    """Grey, colour, inks, progressive, and one with metadata."""
    for image in _modes("L", "RGB", "CMYK"):
        yield _saved(image, "JPEG")
    image = next(_modes("RGB"))
    yield _saved(image, "JPEG", progressive=True, subsampling=2)
    yield _saved(image, "JPEG", exif=_exif(), icc_profile=PROFILE, comment=b"a comment", dpi=(72, 72))


def bmp() -> Iterator[bytes]:
    """Grey, colour, palette, one bit, and with transparency."""
    for image in _modes("1", "L", "P", "RGB", "RGBA"):
        yield _saved(image, "BMP")


def webp() -> Iterator[bytes]:
    """With and without loss, with transparency and metadata."""
    for image in _modes("L", "RGB", "RGBA"):
        yield _saved(image, "WEBP", lossless=True)
    image = next(_modes("RGBA"))
    yield _saved(image, "WEBP", exif=_exif(), icc_profile=PROFILE)
    yield _saved(image.convert("RGB"), "WEBP", quality=50)


def tiff() -> Iterator[bytes]:
    """What tifffile writes, in classic and big files, and what libtiff compresses."""
    import tifffile  # noqa: PLC0415

    def written(pixels: NDArray[Any], *, bigtiff: bool = False, **options: Any) -> bytes:
        file = BytesIO()
        tifffile.imwrite(file, pixels, bigtiff=bigtiff, **options)
        return file.getvalue()

    colour, stack = noisy((HEIGHT, WIDTH, 3)), np.stack([noisy(), noisy()[::-1]])
    for big in (False, True):
        yield written(noisy(), bigtiff=big)
        yield written(noisy(dtype="uint16"), bigtiff=big, byteorder=">", rowsperstrip=3)
        yield written(colour, bigtiff=big, photometric="rgb", tile=(16, 16), compression="deflate", predictor=True)
        yield written(stack, bigtiff=big, photometric="minisblack", metadata=None)
        yield _sharing_strips(written(stack, bigtiff=big, photometric="minisblack", metadata=None, description="d" * 9))
    yield written(noisy(dtype="float32"), extratags=[(42113, 2, 7, "-9999", True)], resolution=(72, 72))
    yield written(noisy(dtype="int16"), compression="deflate", rowsperstrip=5)
    yield written(np.moveaxis(colour, -1, 0).copy(), photometric="rgb", planarconfig="separate")
    yield written(noisy((HEIGHT, WIDTH, 4)), photometric="rgb", extrasamples=["unassalpha"])
    yield written(255 - noisy(), photometric="miniswhite")
    labels = {"axes": "ZYX", "Labels": ["one", "two"], "Ranges": (0.0, 255.0)}
    yield written(stack, imagej=True, metadata=labels, resolution=(2.0, 2.0))
    yield written(stack, ome=True, photometric="minisblack", metadata={"axes": "TYX"})
    for image, compression in zip(_modes("1", "P", "CMYK", "RGB", "L"), ("group4", "tiff_lzw") * 3, strict=False):
        yield _saved(image, "TIFF", compression="tiff_lzw" if image.mode != "1" else compression)
    yield _saved(next(_modes("RGB")), "TIFF", compression="jpeg")
    yield _saved(next(_modes("L")), "TIFF", compression="packbits")


def _sharing_strips(content: bytes) -> bytes:
    """The same with the pixels of the first page in the second, too."""
    import tifffile  # noqa: PLC0415

    file = BytesIO(content)
    with tifffile.TiffFile(file, mode="r+") as pages:
        one, other = (page.aspage().tags["StripOffsets"] for page in pages.pages)
        other.overwrite(one.value)
        return file.getvalue()


def npy() -> Iterator[bytes]:
    """Arrays of several types, orders and shapes."""
    shapes = ((HEIGHT, WIDTH), (HEIGHT, WIDTH, 3), (2, HEIGHT, WIDTH))
    types = ("uint8", "uint16", "int16", "uint32", "float16", "float32", "float64")
    for number, dtype in enumerate(types):
        yield _array(noisy(shapes[number % 3], dtype))
    yield _array(noisy(dtype="uint16").astype(">u2"))
    yield _array(np.asfortranarray(noisy(dtype="float32")))


def _array(pixels: NDArray[Any]) -> bytes:
    file = BytesIO()
    np.save(file, pixels)
    return file.getvalue()


def fits() -> Iterator[bytes]:
    """Integers with and without scale and blanks, floats, an extension, checksums."""
    from astropy.io import fits  # noqa: PLC0415

    def written(*parts: Any) -> bytes:
        file = BytesIO()
        fits.HDUList(list(parts)).writeto(file, checksum=len(parts) > 1)
        return file.getvalue()

    yield written(fits.PrimaryHDU(noisy(dtype="uint16")))
    yield written(fits.PrimaryHDU(noisy((2, HEIGHT, WIDTH), "float32")))
    yield written(fits.PrimaryHDU(), fits.ImageHDU(noisy(dtype="int16")))
    part = fits.PrimaryHDU(noisy(dtype="int16"))
    part.header["BSCALE"], part.header["BZERO"], part.header["BLANK"] = 0.5, 3.0, 7
    yield written(part)


def dicom() -> Iterator[bytes]:
    """Grey in units, several frames, colours, run-length encoding."""
    import pydicom  # noqa: PLC0415
    from pydicom.uid import ExplicitVRLittleEndian, RLELossless, SecondaryCaptureImageStorage  # noqa: PLC0415

    def about(pixels: NDArray[Any], **further: Any) -> Any:
        found = pydicom.Dataset()
        found.file_meta = pydicom.dataset.FileMetaDataset()
        found.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
        found.file_meta.MediaStorageSOPClassUID = found.SOPClassUID = SecondaryCaptureImageStorage
        found.file_meta.MediaStorageSOPInstanceUID = found.SOPInstanceUID = "1.2.3"
        found.Rows, found.Columns = HEIGHT, WIDTH
        found.SamplesPerPixel = 3 if pixels.shape[-1] == 3 else 1
        found.PhotometricInterpretation = "RGB" if pixels.shape[-1] == 3 else "MONOCHROME2"
        found.BitsAllocated = found.BitsStored = 8 * pixels.itemsize
        found.HighBit, found.PixelRepresentation = found.BitsStored - 1, int(pixels.dtype.kind == "i")
        found.PixelData = pixels.tobytes()
        for name, value in further.items():
            setattr(found, name, value)
        return found

    def written(data: Any) -> bytes:
        file = BytesIO()
        data.save_as(file, enforce_file_format=True, implicit_vr=False, little_endian=True)
        return file.getvalue()

    yield written(about(noisy(dtype="int16"), RescaleSlope="2", RescaleIntercept="-1024", PixelPaddingValue=-2000))
    yield written(about(noisy((2, HEIGHT, WIDTH), "uint16"), NumberOfFrames=2, PatientName="No^Body"))
    yield written(about(noisy((HEIGHT, WIDTH, 3)), PlanarConfiguration=0))
    packed = about(noisy())
    packed.compress(RLELossless)
    yield written(packed)


def nifti() -> Iterator[bytes]:
    """Volumes of both versions, with and without scale and packing."""
    import nibabel  # noqa: PLC0415

    volume = noisy((2, HEIGHT, WIDTH), "int16").T
    scaled = nibabel.Nifti1Image(volume, np.eye(4))
    scaled.header.set_slope_inter(0.5, 10)
    yield scaled.to_bytes()
    yield nibabel.Nifti1Image(noisy(dtype="float32").T, np.eye(4)).to_bytes()
    yield nibabel.Nifti2Image(volume, np.eye(4)).to_bytes()
    yield gzip.compress(scaled.to_bytes(), mtime=0)


def prior() -> Iterator[bytes]:
    """A small prior of every kind."""
    from heatprior import GaussianMixturePrior, load  # noqa: PLC0415
    from paper.weights.handmade import dct_prior  # noqa: PLC0415

    mixture = GaussianMixturePrior(
        np.stack([0.1 * np.eye(8), 0.01 * np.eye(8)]), np.zeros((2, 2)), np.array([0.5, 2.0])
    )
    with TemporaryDirectory() as folder:
        path = Path(folder, "prior.safetensors")
        for one in (dct_prior(3), mixture, load("wavelet-density"), load("conv")):
            one.save(path)
            yield path.read_bytes()


def noise_level() -> Iterator[bytes]:
    """Maps of the noise level that suit `noisy()`."""
    levels = np.linspace(5, 20, HEIGHT * WIDTH, dtype=np.float32).reshape(HEIGHT, WIDTH)
    yield _array(levels)
    yield _array(levels.astype("uint8"))


MAKERS: dict[str, tuple[tuple[str, ...], Callable[[], Iterator[bytes]]]] = {
    "png": ((".png",), png),
    "tiff": ((".tif",), tiff),
    "jpeg": ((".jpg",), jpeg),
    "bmp": ((".bmp",), bmp),
    "webp": ((".webp",), webp),
    "npy": ((".npy",), npy),
    "fits": ((".fits",), fits),
    "dicom": ((".dcm",), dicom),
    "nifti": ((".nii", ".nii", ".nii", ".nii.gz"), nifti),
    "prior": ((".safetensors",), prior),
    "map": ((".npy",), noise_level),
}


def seeds_of(target: str) -> list[Seed]:
    """The seeds of a target, always the same."""
    suffixes, make = MAKERS[target]
    return [Seed(suffixes[min(number, len(suffixes) - 1)], content) for number, content in enumerate(make())]
