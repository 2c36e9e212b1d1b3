"""Many learners in one process."""
