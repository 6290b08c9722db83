"""What was measured instead of the image: one operator in each file, each with its closed form if it has one.

A new one is a file with a class that has `on` and `data_are_an_image` (`measurement.Operator`), and its name among the
public ones of the package.
"""
