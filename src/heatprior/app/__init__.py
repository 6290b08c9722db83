"""The page in the browser: a small server on this computer, and hand-written HTML, CSS and JavaScript in `static`."""
