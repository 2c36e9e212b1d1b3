"""What a node remembers of itself: errors by time, newest samples, events; bounded, on disk."""
