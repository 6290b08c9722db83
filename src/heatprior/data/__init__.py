"""Images to learn from and to measure on: data sets, patches drawn from them, trials."""
