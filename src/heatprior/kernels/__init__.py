"""The numba loops, each beside the plain-numpy twin that the tests compare it with."""
