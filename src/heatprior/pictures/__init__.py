"""Pictures of priors, samples, trainings and results: matplotlib."""

SUFFIXES = (".png", ".pdf", ".svg")  # of what is drawn
