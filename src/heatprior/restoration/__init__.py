"""What a prior is good for: restoring images."""
