"""Images larger than memory, on one machine or many: dask arrays, OME-Zarr and zarr stores, big TIFF."""
