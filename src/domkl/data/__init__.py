"""The catalog of data sets, their files, and streams of samples for learners."""
