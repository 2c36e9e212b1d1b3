"""One learner outside a network, and its faces in scikit-learn and River."""
