"""How staff describe a call of another site."""
