"""Tuning a mixture for the denoised image: splitting at several scales, unrolled, with gradients throughout."""
