"""The pictures from which it is learnt whether there is noise: noisy ones with the truth beside them, and clean ones.

Real pairs are those of the folders cc15, real/polyu and real/sidd of HEATPRIOR_DATA: a picture of a camera or phone and
the mean of many shots. Their noise is put onto other pictures, too, scaled, reduced, enlarged, tilted in frequency and
compressed, so that it is seen with sharp content as well as with soft; white, coloured and simulated noise is beside
it. Clean are photographs of BSDS500 (train and test), pictures that scikit-image brings, drawings, patterns, and the
means of many shots, but for those of phones, which still hold noise. Every picture is drawn by a seed of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import gaussian_filter

from paper.weights.drawings import draw, draw_pattern
from paper.weights.picture_edits import (
    FILTERS,
    MIX,
    Picture,
    Rng,
    as_bytes,
    compress,
    crop,
    crop_both,
    from_light,
    read,
    resize,
    sharpen,
    to_light,
)
from paper.weights.simulated_camera import photograph

CAMERAS = {"5dmark3": "Canon5D3", "d600": "NikonD600", "d800": "NikonD800"}  # of cc15, by the names of its files
BUNDLED = (
    "coffee.png", "astronaut.png", "motorcycle_left.png", "hubble_deep_field.jpg", "retina.jpg", "ihc.png",
    "rocket.jpg", "chelsea.png", "camera.png", "coins.png", "moon.png", "gravel.png", "brick.png", "grass.png",
    "page.png", "text.png", "cell.png", "phantom.png", "horse.png", "logo.png", "chessboard_RGB.png",
    "microaneurysms.png", "clock_motion.png",
)  # fmt: skip


class Pair(NamedTuple):
    """Files of a picture and of the mean of many shots; `source` is the data set and the camera or scene."""

    name: str
    source: str
    noisy: Path
    mean: Path


class Item(NamedTuple):
    """A noisy picture and the truth, made when called; from where its noise and its content come."""

    name: str
    noise: str
    content: str
    kind: str  # "real", "full" (all of a picture), "made", or "clean"
    make: Callable[[], tuple[Picture, Picture]]


def find_pairs(data: Path) -> list[Pair]:
    """All real pairs, phones first."""
    found = []
    for folder, suffix in (("real/sidd", "png"), ("real/polyu", "JPG"), ("cc15", "png")):
        for path in sorted((data / folder).glob(f"*_real.{suffix}")):
            name, dataset = path.name.split("_real")[0], folder.split("/")[-1]
            first = name.split("_")[0]
            source = f"{dataset}/{CAMERAS.get(first, first)}"
            found.append(Pair(f"{dataset}-{name}", source, path, Path(str(path).replace("_real", "_mean"))))
    return found


class Pictures:
    """What items are made from."""

    def __init__(self, data: Path) -> None:
        import skimage  # noqa: PLC0415 (for its folder alone)

        self.pairs = find_pairs(data)
        self.cameras = [pair for pair in self.pairs if not pair.source.startswith("sidd")]
        self.photographs = sorted((data / "bsds500" / "train").glob("*.jpg"))
        self.other_photographs = sorted((data / "bsds500" / "test").glob("*.jpg"))
        self.bundled = [Path(skimage.__file__).parent / "data" / name for name in BUNDLED]

    def some_content(self, rng: Rng, avoid: str | None = None) -> tuple[Picture, str]:
        """A clean picture and its source."""
        chance = rng.random()
        if chance < 0.5:
            return read(self.photographs[rng.integers(len(self.photographs))]), "bsds"
        if chance < 0.85:
            while (pair := self.pairs[rng.integers(len(self.pairs))]).source == avoid:
                pass
            mean = read(pair.mean)
            if rng.random() < 0.4 and min(mean.shape[:2]) >= 512:
                mean = resize(mean, 0.5, FILTERS[1])
            return mean, pair.source
        if chance < 0.95:
            return read(self.bundled[rng.integers(len(self.bundled))]), "skimage"
        return draw(rng), "drawing"

    def some_pair(self, rng: Rng) -> Pair:
        """One of a data set that is as likely as the others."""
        name = ("sidd", "polyu", "cc15")[rng.integers(3)]
        own = [pair for pair in self.pairs if pair.source.startswith(name)]
        return own[rng.integers(len(own))]

    def items(self) -> Iterator[Item]:
        """All of them."""
        yield from self._real()
        yield from self._pasted()
        yield from self._made()
        yield from self._clean()
        yield from self._patterned()

    def _real(self) -> Iterator[Item]:
        for number, pair in enumerate(self.pairs):
            whole = partial(_same_crop, pair)
            yield Item(pair.name, pair.source, pair.source, "real", partial(whole, number, 256))
            yield Item(f"{pair.name}-small", pair.source, pair.source, "made", partial(_reduced, pair, 2000 + number))
            yield Item(f"{pair.name}-large", pair.source, pair.source, "made", partial(_enlarged, pair, 12000 + number))
            if pair in self.cameras:
                yield Item(f"{pair.name}-b", pair.source, pair.source, "real", partial(whole, 1000 + number, 192))
        for pair in self.cameras:
            yield Item(f"whole-{pair.name}", pair.source, pair.source, "full", partial(_same_crop, pair, 0, 10**6))

    def _pasted(self) -> Iterator[Item]:
        for number in range(220):
            rng = np.random.default_rng(3000 + number)
            rng.integers(len(self.pairs))
            pair = self.some_pair(rng)
            content, source = self.some_content(rng, avoid=pair.source)
            make = partial(_pasted, pair, content, rng.integers(1 << 31))
            yield Item(f"pasted{number}", pair.source, source, "made", make)
        for number in range(400):
            rng = np.random.default_rng(13000 + number)
            pair = self.some_pair(rng)
            content, source = self.some_content(rng, avoid=pair.source)
            while source.startswith("sidd"):
                content, source = self.some_content(rng, avoid=pair.source)
            make = partial(_tilted, pair, content, rng.integers(1 << 31))
            yield Item(f"tilted{number}", pair.source, source, "made", make)
        for number in range(80):
            rng = np.random.default_rng(23000 + number)
            pair = self.cameras[rng.integers(len(self.cameras))]
            while (other := self.cameras[rng.integers(len(self.cameras))]).source == pair.source:
                pass
            make = partial(_swapped, pair, other, rng.integers(1 << 31))
            yield Item(f"swapped{number}", pair.source, other.source, "made", make)

    def _made(self) -> Iterator[Item]:
        ways: tuple[tuple[str, int, int, Callable[..., tuple[Picture, Picture]]], ...] = (
            ("white", 110, 4000, _white), ("camera", 130, 5000, photograph), ("shaped", 70, 6000, _shaped),
            ("plain", 120, 34000, _plain), ("treated", 160, 35000, _treated),
            ("faint", 160, 36000, partial(_plain, strongest=9.0)),
        )  # fmt: skip
        for name, count, seed, way in ways:
            for number in range(count):
                rng = np.random.default_rng(seed + number)
                content, source = self.some_content(rng)
                yield Item(f"{name}{number}", name, source, "made", partial(way, content, rng.integers(1 << 31)))

    def _clean(self) -> Iterator[Item]:
        made: list[tuple[str, str, Callable[[Rng], Picture]]] = []
        chosen = np.random.default_rng(8000).choice(len(self.photographs), 70, replace=False).tolist()
        made += [(f"bsds{k}", "bsds", partial(_crop_of, self.photographs[k], 256)) for k in chosen]
        made += [(pair.name, pair.source, partial(_crop_of, pair.mean, 224)) for pair in self.pairs]
        for path in self.bundled:
            made.append((f"sk-{path.name}", "skimage", partial(_crop_of, path, 256)))
            made.append((f"sk2-{path.name}", "skimage", partial(_resized_crop, path)))
        made += [(f"drawing{number}", "drawing", draw) for number in range(40)]
        for number in range(100):
            source = self.some_content(np.random.default_rng(7000 + len(made)))[1]
            made.append((f"mix{number}", source, self._mixed))
        yield from _as_clean(made, 7000)
        rest = [k for k in range(len(self.photographs)) if k not in chosen][:110]
        made = [(f"bsds{k}", "bsds", partial(_crop_of, self.photographs[k], 256)) for k in rest]
        for number, pair in enumerate(self.pairs):
            if pair in self.cameras and number % 2 == 0:
                made.append((f"big-{pair.name}", pair.source, partial(_enlarged_crop, pair.mean)))
        made += [(f"drawing{number}", "drawing", draw) for number in range(40, 70)]
        yield from _as_clean(made, 17000)
        made = [(f"whole-{pair.name}", pair.source, partial(_crop_of, pair.mean, 10**6)) for pair in self.cameras]
        made += [
            (f"all-bsds{k}", "bsds", partial(_crop_of, path, 10**6)) for k, path in enumerate(self.photographs) if k % 4
        ]
        made += [
            (f"other-bsds{k}", "bsds", partial(_crop_of, path, 10**6)) for k, path in enumerate(self.other_photographs)
        ]
        made += [
            (f"part{n}-{path.stem}", "skimage", partial(_crop_of, path, 224)) for path in self.bundled for n in range(3)
        ]
        yield from _as_clean(made, 27000)

    def _patterned(self) -> Iterator[Item]:
        """Patterns alone, with a camera's noise and with white noise."""
        yield from _as_clean([(f"pattern{number}", "pattern", draw_pattern) for number in range(240)], 47000)
        for number in range(120):
            rng = np.random.default_rng(43000 + number)
            pair, content, seed = self.some_pair(rng), draw_pattern(rng), int(rng.integers(1 << 31))
            made = partial(_tilted, pair, content, seed)
            yield Item(f"tilted-pattern{number}", pair.source, "pattern", "made", made)
            if number % 2:
                yield Item(f"plain-pattern{number}", "plain", "pattern", "made", partial(_plain, content, seed))

    def _mixed(self, rng: Rng) -> Picture:
        """Clean content reduced or enlarged, sharpened, compressed."""
        content, _ = self.some_content(rng)
        factor = rng.choice([0.5, 0.7, 1.0, 1.5, 2.0])
        found = crop(rng, content, 480)
        if factor != 1:
            found = resize(found, factor, FILTERS[rng.integers(3)])
        found = crop(rng, found, 224)
        if rng.random() < 0.3:
            found = as_bytes(sharpen(found.astype(float), rng.uniform(0.3, 1)))
        return compress(found, rng.integers(60, 98)) if rng.random() < 0.6 else found


def _as_clean(made: list[tuple[str, str, Callable[[Rng], Picture]]], seed: int) -> Iterator[Item]:
    for number, (name, source, make) in enumerate(made):
        yield Item(f"clean-{name}", "none", source, "clean", partial(_twice, make, seed + number))


def _twice(make: Callable[[Rng], Picture], seed: int) -> tuple[Picture, Picture]:
    picture = make(np.random.default_rng(seed))
    return picture, picture


def _crop_of(path: Path, side: int, rng: Rng) -> Picture:
    return crop(rng, read(path), side) if side < 10**6 else read(path)


def _resized_crop(path: Path, rng: Rng) -> Picture:
    return resize(crop(rng, read(path), 400), rng.choice([0.5, 0.7, 1.4]), FILTERS[1])[:256, :256]


def _enlarged_crop(path: Path, rng: Rng) -> Picture:
    return resize(crop(rng, read(path), 128), rng.choice([1.4, 1.7]), FILTERS[rng.integers(2)])


def _same_crop(pair: Pair, seed: int, side: int) -> tuple[Picture, Picture]:
    return crop_both(np.random.default_rng(seed), read(pair.noisy), read(pair.mean), side)


def _reduced(pair: Pair, seed: int) -> tuple[Picture, Picture]:
    rng = np.random.default_rng(seed)
    factor, how = rng.choice([0.5, 0.7]), FILTERS[rng.integers(3)]
    noisy, clean = (resize(read(path), factor, how) for path in (pair.noisy, pair.mean))
    if rng.random() < 0.4:
        noisy = compress(noisy, rng.integers(70, 97))
    return crop_both(rng, noisy, clean, 192)


def _enlarged(pair: Pair, seed: int) -> tuple[Picture, Picture]:
    rng = np.random.default_rng(seed)
    factor = rng.choice([1.3, 1.6, 2.0])
    how = (FILTERS[0], FILTERS[1], Image.Resampling.BILINEAR)[rng.integers(3)]
    both = crop_both(rng, read(pair.noisy), read(pair.mean), int(192 / factor))
    noisy, clean = (resize(np.ascontiguousarray(part), factor, how) for part in both)
    return (compress(noisy, rng.integers(70, 97)) if rng.random() < 0.4 else noisy), clean


def _noise_of(rng: Rng, pair: Pair, side: int) -> NDArray[Any]:
    noisy, clean = crop_both(rng, read(pair.noisy), read(pair.mean), side)
    return noisy.astype(float) - clean


def _pasted(pair: Pair, content: Picture, seed: Any) -> tuple[Picture, Picture]:
    rng = np.random.default_rng(seed)
    noise, clean = _noise_of(rng, pair, 192), crop(rng, content, 192)
    side = min(len(noise), len(clean))
    noise, clean = noise[:side, :side], clean[:side, :side]
    noise = noise[::-1] if rng.random() < 0.5 else noise
    noise = noise.swapaxes(0, 1) if rng.random() < 0.5 else noise
    rng.random()
    noisy = as_bytes(clean + np.exp(rng.uniform(np.log(0.35), np.log(2.0))) * noise)
    return (compress(noisy, rng.integers(75, 99)) if rng.random() < 0.35 else noisy), clean


def _tilted(pair: Pair, content: Picture, seed: Any) -> tuple[Picture, Picture]:
    """Noise enlarged or reduced, its spectrum tilted, brightness and colours by themselves stronger or weaker."""
    rng = np.random.default_rng(seed)
    clean = crop(rng, content, 192)
    noise = read(pair.noisy).astype(np.float32) - read(pair.mean).astype(np.float32)
    zoom = rng.choice([0.5, 0.7, 1.0, 1.4, 2.0])
    side = min(192, *clean.shape[:2])
    noise = crop(rng, noise, min(int(np.ceil(side / zoom)), len(noise)))
    if zoom != 1:
        size = (round(noise.shape[1] * zoom), round(noise.shape[0] * zoom))
        planes = [Image.fromarray(np.ascontiguousarray(noise[..., c])).resize(size, FILTERS[0]) for c in range(3)]
        noise = np.stack([np.asarray(plane) for plane in planes], -1)
    side = min(side, *noise.shape[:2])
    noise, clean = noise[:side, :side], clean[:side, :side]
    noise = noise[::-1] if rng.random() < 0.5 else noise
    noise = noise.swapaxes(0, 1) if rng.random() < 0.5 else noise
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side))
    tilt = np.minimum((0.15 / (frequency + 0.05)) ** rng.uniform(-0.5, 1.0), 4)
    spectrum = np.fft.rfft2(noise, axes=(0, 1)) * tilt[..., None]
    tilted = np.fft.irfft2(spectrum, s=(side, side), axes=(0, 1))
    tilted = (tilted @ MIX.T * np.exp(rng.normal(0, 0.4, 3))) @ MIX
    tilted *= np.exp(rng.uniform(np.log(1.5), np.log(25))) / (tilted.std() + 1e-6)
    noisy = as_bytes(clean + tilted)
    return (compress(noisy, rng.integers(75, 99)) if rng.random() < 0.4 else noisy), clean


def _swapped(pair: Pair, other: Pair, seed: Any) -> tuple[Picture, Picture]:
    rng = np.random.default_rng(seed)
    noise, clean = _noise_of(rng, pair, 320), crop(rng, read(other.mean), 320)
    noise = noise[::-1] if rng.random() < 0.5 else noise
    noisy = as_bytes(clean + np.exp(rng.uniform(np.log(0.6), np.log(1.6))) * noise)
    return (compress(noisy, rng.integers(88, 100), 0) if rng.random() < 0.5 else noisy), clean


def _white(content: Picture, seed: int) -> tuple[Picture, Picture]:
    """White noise; or compressed after, or reduced after, or from before a camera's gamma."""
    rng = np.random.default_rng(seed)
    clean = crop(rng, content, 192 if rng.random() < 0.7 else 400)
    sigma = np.exp(rng.uniform(np.log(1.5), np.log(60.0)))
    noisy = as_bytes(clean + sigma * rng.standard_normal(clean.shape))
    chance = rng.random()
    if chance < 0.25:
        noisy = compress(noisy, rng.choice([50, 75, 85, 95]))
    elif chance < 0.5:
        factor, how = rng.choice([0.5, 0.7]), FILTERS[rng.integers(3)]
        noisy, clean = resize(noisy, factor, how), resize(clean, factor, how)
    elif chance < 0.6:
        light = to_light(clean) + sigma / 255 * 0.5 * rng.standard_normal(clean.shape)
        noisy = as_bytes(from_light(np.clip(light, 0, 1)))
    return noisy, clean


def _plain(content: Picture, seed: int, strongest: float = 60.0) -> tuple[Picture, Picture]:
    """White noise on large pictures."""
    rng = np.random.default_rng(seed)
    clean = crop(rng, content, 320)
    sigma = np.exp(rng.uniform(np.log(2.0), np.log(strongest)))
    return as_bytes(clean + sigma * rng.standard_normal(clean.shape)), clean


def _treated(content: Picture, seed: int) -> tuple[Picture, Picture]:
    """White noise, then reduced, compressed, or both, as pictures from elsewhere come; half of it hardly any."""
    rng = np.random.default_rng(seed)
    clean = crop(rng, content, 400)
    sigma = np.exp(rng.uniform(np.log(1.0), np.log(40.0)))
    noisy = as_bytes(clean + sigma * rng.standard_normal(clean.shape))
    if rng.random() < 0.5:
        factor, how = rng.uniform(0.4, 0.9), FILTERS[rng.integers(3)]
        noisy, clean = resize(noisy, factor, how), resize(clean, factor, how)
    if rng.random() < 0.7:
        noisy = compress(noisy, rng.integers(40, 97))
    return crop_both(rng, noisy, clean, 256)


def _shaped(content: Picture, seed: int) -> tuple[Picture, Picture]:
    """Gaussian noise of several widths, growing or falling with brightness, stronger or weaker in colours."""
    rng = np.random.default_rng(seed)
    clean = crop(rng, content, 192)
    strength = np.exp(rng.uniform(np.log(1.5), np.log(40)))
    noise = np.zeros(clean.shape)
    for number, axis in enumerate(MIX):
        white, parts = rng.standard_normal(clean.shape[:2]), rng.random(3)
        plane = parts[0] * white
        for width, part in ((0.6, parts[1]), (1.3, parts[2]), (3.0, rng.random() * (rng.random() < 0.5))):
            smooth = gaussian_filter(white if rng.random() < 0.5 else rng.standard_normal(clean.shape[:2]), width)
            plane = plane + part * smooth / smooth.std()
        plane /= plane.std()
        noise += (plane * strength * (1 if number == 0 else np.exp(rng.uniform(-1, 0.7))))[..., None] * axis
    light, way = clean.mean(-1, keepdims=True) / 255, rng.choice(3)
    noise *= (1.0, np.sqrt(0.2 + 1.2 * light), np.sqrt(1.4 - 1.2 * light))[way]
    noisy = as_bytes(clean + noise)
    return (compress(noisy, rng.integers(70, 99)) if rng.random() < 0.3 else noisy), clean
