"""What the site takes from elsewhere: the help of the command line, the records of measurements, a chart of them."""
