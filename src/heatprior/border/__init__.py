"""The border: a user's arrays on one side, grey levels from 0 to 1 in float32 on the other."""
