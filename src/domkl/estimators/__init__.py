"""One learner outside a network, and its estimators for scikit-learn and River."""
