"""Training of priors."""
