"""One learner as a host: it predicts, learns labels that may come late, speaks, hears and merges.

The estimators run one without neighbors, a node of a mesh one with neighbors.
"""
