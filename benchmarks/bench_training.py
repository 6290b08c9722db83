"""One training step of the 7×7 prior, batch 3,200, beside the same step written plainly with torch's autograd.

Both draw nothing: the batch is given. A step is the loss, its gradient in filters and logits, Adam's update and the
projection with B = 3. Both compute in float32, but heatprior adds up pieces of the batch in float64. Of iPALM four
steps are timed, one of which checks its bound. At last whole trainings with the paper's settings, drawing of patches
and noise included: 60 steps, told as hours for 100,000.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measure import seconds, write_result  # first: it makes the folder `paper` known
from numba import set_num_threads
from skimage import data
from threadpoolctl import threadpool_limits

from heatprior import TrainingConfig
from heatprior.arrays import FloatArray
from heatprior.data.datasets import PatchSource
from heatprior.learning.patch_training import NoisyBatch, OrthogonalAdam, match_scores, project_orthogonal
from paper.learning.ipalm import CHECK_EVERY, IPalm, Objective, PaperConfig, initial_experts

SEED = 0
BATCH = 3200
PIECES = 8


def make_batch(size: int, rng: np.random.Generator) -> NoisyBatch:
    """Patches of a random walk in two dimensions: smooth, as those of images are."""
    walk = rng.standard_normal((size, size, BATCH)).cumsum(axis=0).cumsum(axis=1).reshape(size * size, BATCH)
    clean = 0.02 * (walk - walk.mean(axis=0))
    noise = rng.standard_normal(clean.shape)
    arrays = (clean, noise - noise.mean(axis=0), rng.uniform(0.01, 0.4, BATCH))
    return NoisyBatch(*(array.astype(np.float32) for array in arrays))


def pieces_of(batch: NoisyBatch) -> list[NoisyBatch]:
    parts = (np.array_split(array, PIECES, axis=-1) for array in (batch.clean, batch.noise, batch.sigma))
    return [NoisyBatch(*part) for part in zip(*parts, strict=True)]


def start(size: int) -> list[FloatArray]:
    filters = np.random.default_rng(SEED).normal(scale=1.0 / size, size=(size**2 - 1, size**2))
    return [project_orthogonal(filters), np.array(initial_experts(size**2 - 1).logits)]


def own_step(size: int, batch: NoisyBatch, *, ipalm: bool) -> Any:
    pieces = pieces_of(batch)
    state = {"point": start(size)}
    adam, inertial = OrthogonalAdam.begin(state["point"]), IPalm.begin(state["point"], CHECK_EVERY)

    def step() -> None:
        loss = partial(match_scores, pieces, 1.0)
        if ipalm:
            state["point"] = inertial.step(state["point"], Objective.of(loss, (project_orthogonal, None)))[1]
        else:
            state["point"] = adam.step(state["point"], loss, (0.005, 0.1))[1]

    return step


def torch_step(size: int, batch: NoisyBatch) -> Any:
    import torch

    filters, logits = (torch.tensor(x, dtype=torch.float32, requires_grad=True) for x in start(size))
    clean, noise, sigma = (torch.tensor(x.T, dtype=torch.float32) for x in (batch.clean, batch.noise, batch.sigma))
    means = torch.linspace(-1.0, 1.0, logits.shape[1])
    adam = torch.optim.Adam([{"params": [filters], "lr": 0.005}, {"params": [logits], "lr": 0.1}], betas=(0.9, 0.99))

    def step() -> None:
        noisy = clean + sigma[:, None] * noise
        responses = noisy @ filters.T  # (n, J)
        variances = (means[1] - means[0]) ** 2 + (filters**2).sum(dim=1) * sigma[:, None] ** 2
        exponents = -((responses[..., None] - means) ** 2) / (2.0 * variances[..., None])
        rho = torch.softmax(exponents + torch.log_softmax(logits, dim=1), dim=-1)  # (n, J, L)
        scores = ((rho @ means) - responses) / variances
        residual = noise + sigma[:, None] * (scores @ filters)
        adam.zero_grad()
        (residual**2).sum(dim=1).mean().backward()
        adam.step()
        with torch.no_grad():
            scales = torch.ones(len(filters))
            for _ in range(3):
                left, _, right = torch.linalg.svd(scales[:, None] * filters, full_matrices=False)
                directions = left @ right
                scales = (directions * filters).sum(dim=1).clamp(min=0.0)
            filters.copy_(scales[:, None] * directions)

    return step


def main() -> None:
    rng = np.random.default_rng(SEED)
    with_torch = importlib.util.find_spec("torch") is not None
    if not with_torch:
        print("torch is not installed: no comparison (pip install torch)")
    result: dict[str, Any] = {"seed": SEED, "batch": BATCH, "milliseconds": {}}
    print(f"{'milliseconds per step':28} 1 thread  2 threads")
    for size in (7, 15):
        batch = make_batch(size, rng)
        rows = {"adam": own_step(size, batch, ipalm=False), "ipalm": own_step(size, batch, ipalm=True)}
        if with_torch and size == 7:
            rows["torch autograd"] = torch_step(size, batch)
        for name, step in rows.items():
            times = {}
            for threads in (1, 2):
                set_num_threads(threads)
                if name.startswith("torch"):
                    import torch

                    torch.set_num_threads(threads)
                with threadpool_limits(threads if name.startswith("torch") else 1, user_api="blas"):
                    step()
                    many = CHECK_EVERY if name == "ipalm" else 1
                    repeated = partial(repeat, step, many)
                    times[threads] = 1e3 / many * seconds(repeated, 3 if name.startswith("torch") else 20)
            print(f"{size}×{size} {name:24} {times[1]:8.1f} {times[2]:10.1f}")
            result["milliseconds"][f"{size} {name}"] = times
    if with_torch:
        own, other = result["milliseconds"]["7 adam"], result["milliseconds"]["7 torch autograd"]
        result["times_faster_than_torch"] = {threads: other[threads] / own[threads] for threads in (1, 2)}
        ratios = result["times_faster_than_torch"]
        print(f"adam is {ratios[1]:.0f} (1 thread) and {ratios[2]:.0f} (2 threads) times faster than torch's autograd")
    set_num_threads(2)
    result["hours_for_100000_steps"] = {
        f"{size} {optimizer}": hours_of_training(size, optimizer) for size in (7, 15) for optimizer in ("ipalm", "adam")
    }
    for name, hours in result["hours_for_100000_steps"].items():
        print(f"100,000 steps of {name}, drawing included, on two threads: {hours:.2f} hours")
    write_result("bench_training", result)


def repeat(step: Callable[[], object], times: int) -> None:
    for _ in range(times):
        step()


def hours_of_training(size: int, optimizer: str) -> float:
    """Of 100,000 steps, by the later ones of 60."""
    camera: Any = data.camera
    images = [(camera()[::step] / 255).astype(np.float32) for step in (1, 2)]
    config = (TrainingConfig if optimizer == "adam" else PaperConfig)(size=size, steps=60)
    ends = [progress.seconds for progress in config.training(PatchSource(images, size)).run(60)]
    rounds = np.diff(ends[::CHECK_EVERY])[3:] / CHECK_EVERY
    return float(np.median(rounds)) * 1e5 / 3600


if __name__ == "__main__":
    main()
