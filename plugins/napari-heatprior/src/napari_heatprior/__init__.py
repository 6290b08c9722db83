"""heatprior in napari: denoise a layer, look at its noise; the work itself is done by `heatprior`."""
