"""Priors: densities of image patches that are known in closed form at every noise level."""
