"""What must hold of every run of the command line, whatever it was given."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fuzz.cases import Case
from fuzz.meanings import Meaning

LONGEST = 20.0  # seconds of the processor; the machine may have other things to do
MOST_MEMORY = 300 << 20  # bytes beyond three times the image
SPOKEN = ("heatprior: error: ", "heatprior: warning: ", "heatprior: ")
LOSSY = (".jpg", ".jpeg")
LOSS = 16.0


class Outcome(NamedTuple):
    """What a run did: exit code or traceback, what it said, what it took, and the pixels that went to each file."""

    code: int | None
    traceback: str
    out: str
    err: str
    seconds: float  # of the processor
    memory: int  # bytes, at most, beyond what the process had
    computed: dict[str, NDArray[Any]]


def broken_laws(case: Case, outcome: Outcome, folder: Path) -> list[str]:
    """The laws that do not hold, each in a few words; none of them, if all is well."""
    logging.disable()  # what the libraries say of a file when it is read once more
    try:
        return _broken(case, outcome, folder)
    finally:
        logging.disable(logging.NOTSET)


def _broken(case: Case, outcome: Outcome, folder: Path) -> list[str]:
    if outcome.traceback:
        return [f"traceback: {outcome.traceback.strip().splitlines()[-1]}"]
    broken = [*_spoken(outcome), *_bounded(outcome), *_unchanged(case, folder), *_left(case, outcome, folder)]
    if case.meaning is not None:  # which may be written otherwise than computed: colours divided by transparency
        return broken or _as_meant(case.meaning, outcome, folder)
    if not broken:
        for name in _written(case, folder):
            broken += (
                _as_computed(folder / name, outcome.computed[name])
                if name in outcome.computed
                else [f"who wrote {name}?"]
            )
    return broken


def _spoken(outcome: Outcome) -> list[str]:
    broken = [f"exit code {outcome.code}"] if outcome.code not in (0, 1, 2) else []
    lines = outcome.err.splitlines()
    broken += [f"said {line[:80]!r}" for line in lines if not line.startswith(SPOKEN)]
    errors = [line for line in lines if line.startswith(SPOKEN[0])]
    if outcome.code == 2 and (len(errors) != 1 or lines[-1] != errors[0]):
        broken.append(f"{len(errors)} lines of errors for exit code 2")
    if outcome.code == 0 and errors:
        broken.append("errors for exit code 0")
    if outcome.code == 1 and not errors:
        broken.append("no error for exit code 1")
    return broken


def _bounded(outcome: Outcome) -> list[str]:
    image = max((pixels.nbytes for pixels in outcome.computed.values()), default=0)
    broken = [f"{outcome.memory >> 20} MB"] if outcome.memory > MOST_MEMORY + 3 * image else []
    return broken + ([f"{outcome.seconds:.0f} s"] if outcome.seconds > LONGEST else [])


def _unchanged(case: Case, folder: Path) -> list[str]:
    kept = case.files if case.kept is None else case.kept
    there = {name: _content(folder / name, len(case.files[name])) for name in kept if name in case.padded}
    there |= {name: _content(folder / name) for name in kept if name not in case.padded}
    broken = [
        f"{name} {'is gone' if now is None else 'changed'}" for name, now in there.items() if now != case.files[name]
    ]
    replaced = "--force" in case.arguments  # a link may be what is replaced, but not what it leads to
    return broken + [f"{name} is gone" for name, _ in case.links if not (folder / name).is_symlink() and not replaced]


def _content(path: Path, most: int = -1) -> bytes | None:
    """The first bytes of a file, or all of them; None if it is gone."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return file.read(most)


def _as_meant(meaning: Meaning, outcome: Outcome, folder: Path) -> list[str]:
    """What is known of the outputs beforehand holds."""
    if outcome.code != 0:
        return ["refused what is sound"]
    first, *rest = (_pixels(folder / name) for name in meaning.outputs)
    if meaning.near is not None:
        right, tolerance = meaning.near
        distance = float(np.nanmean(np.abs(first - right)))
        return [f"{meaning.outputs[0]} is {distance:.1f} from what it means"] if distance > tolerance else []
    change = np.abs(getattr(np, meaning.turned)(rest[0][..., 0]) - first[..., 0]).max()
    return [f"turning changes it by {change:g}"] if change > 1 else []


def _pixels(path: Path) -> NDArray[np.float64]:
    """As others read them; of PNG and WebP the colours, without transparency."""
    if path.suffix == ".fits":
        from astropy.io import fits  # noqa: PLC0415 (an extra)

        with fits.open(path, do_not_scale_image_data=True) as parts:
            return np.asarray(parts[0].data, np.float64)
    if path.suffix == ".tif":
        import tifffile  # noqa: PLC0415

        return np.asarray(tifffile.imread(path), np.float64)
    from PIL import Image  # noqa: PLC0415

    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"), np.float64)


def _written(case: Case, folder: Path) -> list[str]:
    return [name for name in case.outputs if (folder / name).exists()]


def _left(case: Case, outcome: Outcome, folder: Path) -> list[str]:
    """Results are there if and only if the exit code says so, and nothing else is."""
    found = (
        {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        - set(case.files)
        - set(dict(case.links))
    )
    given = {Path(name).name for name in case.files}  # a result may have the name of its input, and stores hidden files
    given |= {f"{Path(name).stem}-compare.png" for name in given}
    given |= {part for word in case.arguments for part in Path(word).parts}  # and so may a folder that was asked for
    hidden = [name for name in found if is_hidden(name, given)]
    broken = [f"left {name} behind" for name in hidden]
    if outcome.code == 2 and found:
        broken.append(f"refused, but left {sorted(found)[0]}")
    if not case.outputs:
        return broken
    broken += [f"left {name} behind" for name in found - set(case.outputs) - set(hidden)]
    broken += [f"no {name}" for name in case.outputs if outcome.code == 0 and name not in found]
    broken += [f"no {name}, which has no fault" for name in case.sound if name not in found]
    return broken


def is_hidden(name: str, given: Collection[str] = ()) -> bool:
    """Whether a file, or a folder that it is in, has a hidden name that is not one of those given."""
    return any(part.startswith(".") and part not in given for part in Path(name).parts)


def _as_computed(path: Path, pixels: NDArray[Any]) -> list[str]:
    """The file can be read by heatprior and by others, and holds what was computed."""
    from heatprior.images import read_image  # noqa: PLC0415 (slow to import)

    try:
        again = read_image(path)
        others = _read_by_others(path)
    except Exception as error:
        return [f"{path.name} cannot be read: {type(error).__name__}: {error}"]
    if others is not None and others.size < again.pixels.size:
        return [f"{path.name} has {again.pixels.size} samples, for others {others.size}"]
    values = again.values()
    if again.pixels.ndim < pixels.ndim:  # colours that agree came back as grey
        values = np.broadcast_to(values[..., None], pixels.shape)
    if values.shape != pixels.shape:
        return [f"{path.name} is {values.shape}, computed was {pixels.shape}"]
    allowed = _rounding(again)
    with np.errstate(all="ignore"):
        differ = np.abs(values.astype(np.float64) - pixels) > allowed
    missing = np.isnan(values.astype(np.float64)) | np.isnan(pixels.astype(np.float64))
    if path.suffix in LOSSY:
        distance = np.sqrt(np.mean(np.square(values.astype(np.float64) - pixels)))
        return [f"{path.name} is {distance:.1f} from what was computed"] if distance > LOSS else []
    return [f"{path.name} is not what was computed"] if (differ & ~missing).any() else []


def _rounding(image: Any) -> float:
    """How far what a file keeps may be from what was computed: half a step of what it stores, or to a whole number."""
    scale = getattr(image.native, "scale", None)
    if scale is not None and scale.dtype.kind != "f":
        # values beyond what can be stored are clipped; inside, half a step, and rounding of float32
        return float(max(0.5 * abs(scale.slope), 1e-6 * abs(scale.intercept)) * 1.01 + 1.0)
    kept = 0.0
    if scale is not None and (scale.slope, scale.intercept) != (1.0, 0.0):  # floats that are rounded when scaled back
        largest = np.abs(image.values(), dtype=np.float64).max(initial=0.0, where=np.isfinite(image.values()))
        kept = float(np.finfo(scale.dtype).eps * (largest + abs(scale.intercept)))
    return kept + (1.0 if image.missing is not None else 0.0)


def _read_by_others(path: Path) -> NDArray[Any] | None:
    """The samples as the library that everybody has for the format reads them; None where there is none besides."""
    suffix = path.suffix
    if suffix == ".npy":
        return np.asarray(np.load(path, allow_pickle=False))
    if suffix in (".png", ".jpg", ".bmp", ".webp"):
        from PIL import Image  # noqa: PLC0415

        with Image.open(path) as image:
            return np.asarray(image)
    if suffix == ".tif":
        import tifffile  # noqa: PLC0415

        with tifffile.TiffFile(path) as file:
            try:
                return np.concatenate([one.asarray().ravel() for one in file.series])
            except ValueError as error:
                if "imagecodecs" in str(error):
                    return None
                raise
    return None
