"""A fuzzer of the command line: valid files and arguments, mutated, and the laws that must hold whatever comes.

`python -m fuzz --seconds 60` runs cases of every target in a worker process with limits on memory and time; a case is
made from its target and its number alone, so that `python -m fuzz --replay tiff 1234` runs one again.
"""
