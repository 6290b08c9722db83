"""The kinds of priors that can be learnt from patches, each with its settings and its training.

All trainings have the same face: `config`, `done`, `run`, `prior`, `state` and `restore`.
"""

from __future__ import annotations

from heatprior.data.datasets import PatchSource
from heatprior.learning.mixture_training import MixtureConfig, MixtureTraining
from heatprior.learning.patch_training import Training, TrainingConfig
from heatprior.priors import gaussian_mixture, patch

AnyConfig = TrainingConfig | MixtureConfig
AnyTraining = Training | MixtureTraining
CONFIGS: dict[str, type[AnyConfig]] = {patch.KIND: TrainingConfig, gaussian_mixture.KIND: MixtureConfig}


def kind_of(config: AnyConfig) -> str:
    """The kind of prior that these settings give."""
    return next(kind for kind, settings in CONFIGS.items() if isinstance(config, settings))


def new_training(config: AnyConfig, source: PatchSource) -> AnyTraining:
    """A training with these settings, at its start."""
    return MixtureTraining(config, source) if isinstance(config, MixtureConfig) else Training(config, source)


def noise_of_images(config: AnyConfig) -> float:
    """The noise that the images are said to have; only mixtures can be learnt from noisy ones."""
    return config.sigma if isinstance(config, MixtureConfig) else 0.0
