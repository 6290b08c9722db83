"""Coverage-guided fuzzing of the readers and of `from_file` with atheris: `python -m fuzz.coverage tiff -runs=1000`.

Optional: `pip install atheris`. A reader may refuse a file with a `HeatpriorError`; anything else is a find.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from fuzz.cases import TARGETS
from fuzz.seeds import seeds_of

DECODERS = {  # what readers import when they are called
    "tiff": ("tifffile", "PIL.TiffImagePlugin"),
    "png": ("PIL.PngImagePlugin",),
    "jpeg": ("PIL.JpegImagePlugin",),
    "bmp": ("PIL.BmpImagePlugin",),
    "webp": ("PIL.WebPImagePlugin",),
    "fits": ("astropy.io.fits",),
    "dicom": ("pydicom", "pydicom.pixels"),
    "nifti": ("nibabel",),
}


def main() -> None:
    """Fuzz one target until something is found, from the seeds of the other fuzzer."""
    import atheris  # noqa: PLC0415 (no dependency)

    target = sys.argv[1] if len(sys.argv) > 1 else ""
    if target not in TARGETS[:-1]:
        raise SystemExit(f"expected one of {', '.join(TARGETS[:-1])}")
    with atheris.instrument_imports(include=["heatprior", "tifffile", "PIL", "pydicom", "nibabel", "astropy.io.fits"]):
        from heatprior import load  # noqa: PLC0415
        from heatprior.errors import HeatpriorError  # noqa: PLC0415
        from heatprior.images import read_image  # noqa: PLC0415

        for module in DECODERS.get(target, ()):
            import_module(module)
    folder = Path(tempfile.mkdtemp(prefix="coverage-"))
    corpus, seeds = folder / "corpus", seeds_of(target)
    corpus.mkdir()
    for number, seed in enumerate(seeds):
        (corpus / str(number)).write_bytes(seed.content)
    path = folder / f"file{seeds[0].suffix}"

    def try_one(content: bytes) -> None:
        path.write_bytes(content)
        with suppress(HeatpriorError):
            load(path) if target == "prior" else read_image(path)

    atheris.Setup([sys.argv[0], *sys.argv[2:], str(corpus)], try_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
