"""How a prior is learnt."""
