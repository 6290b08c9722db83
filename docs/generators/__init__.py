"""What the site takes from elsewhere: help of the command line, records of measurements, and a chart."""
