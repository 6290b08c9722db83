"""The scripts that made the shipped weights, and those of the exhibits in `paper/priors`."""
