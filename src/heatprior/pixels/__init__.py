"""Images at the border: their type and scale, their channels, and the pixels that they lack."""
