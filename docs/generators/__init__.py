"""What the site takes from elsewhere: help of the command line, docstrings, records of measurements, and a chart."""
