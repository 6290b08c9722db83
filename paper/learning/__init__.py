"""How exhibits and shipped priors of whole images are learnt: losses and trainings that `hp.train` does not offer."""
