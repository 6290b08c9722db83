"""The page in the browser: a small server on this computer, and hand-written HTML, CSS and JavaScript in `static`.

It computes nothing by itself: every result comes from the functions that the library and the command line use.
"""
