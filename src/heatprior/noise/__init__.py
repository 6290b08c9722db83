"""How much noise there is: its model, its estimation, and where the model does not hold."""
