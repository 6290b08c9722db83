"""Retraining the priors of the paper, with the settings of the shipped ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from heatprior.errors import HeatpriorError, TrainingError
from heatprior.files import make_folder
from heatprior.learning.patch_training import TrainingConfig
from heatprior.learning.train import train
from heatprior.learning.training import LogEntry, StepReport
from heatprior.priors.patch import PatchPrior
from heatprior.priors.schedules import CARD_ENTRY
from paper import load
from paper.claims.bench import TRAINING, Bench

QUICK_STEPS = 50


def retrained(
    folder: Path,
    bench: Bench,
    names: Sequence[str],
    *,
    again: bool = False,
    progress: Callable[[float], None] = lambda _: None,
    report: Callable[[str], None] = lambda _: None,
) -> dict[str, Path]:
    """Files of retrained priors; one that exists, with the same settings and images, is kept.

    Schedules of splitting are not part of a training: they are those of the shipped prior of the name. Priors of other
    kinds than patch priors are not trained here, and left out.
    """
    images = bench.fingerprint((), (TRAINING,))[TRAINING]
    make_folder(folder)
    paths = {}
    for number, name in enumerate(names):
        shipped = load(name)
        if shipped.kind != PatchPrior.kind:
            continue
        config = settings_of(shipped.card, name)
        if bench.quick:
            config = replace(config, steps=min(config.steps, QUICK_STEPS))
        path = folder / f"{name}.safetensors"
        card = {
            "name": name,
            "made": "by python -m paper --retrain",
            "images": images,
            **({CARD_ENTRY: shipped.card[CARD_ENTRY]} if CARD_ENTRY in shipped.card else {}),
        }
        if again or not _is_there(path, config, card):

            def tell(event: StepReport | LogEntry, number: int = number, steps: int = config.steps) -> None:
                progress(number + event.step / steps)

            prior = train(bench.training_images, config, report=tell)
            PatchPrior(prior.filters, prior.experts, {**prior.card, **card}).save(path)
            report(f"trained {name}, {config.steps} steps")
        paths[name] = path
        progress(number + 1.0)
    return paths


def settings_of(card: Mapping[str, Any], name: str) -> TrainingConfig:
    """How a shipped prior was trained."""
    known = {field.name for field in fields(TrainingConfig)}
    told = {key: value for key, value in card.get("training", {}).items() if key in known}
    if not told:
        raise TrainingError(f"the card of {name} does not say how it was trained; use the shipped prior")
    return TrainingConfig(**told)


def _is_there(path: Path, config: TrainingConfig, card: Mapping[str, Any]) -> bool:
    try:
        old = load(str(path)).card
        return settings_of(old, path.stem) == config and all(old.get(key) == value for key, value in card.items())
    except HeatpriorError:
        return False
