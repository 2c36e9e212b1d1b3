"""Sweeps: trials x data sets x algorithms x parameters x graphs, here or on a cluster."""
