"""Pictures of priors, samples, trainings and results: matplotlib."""
