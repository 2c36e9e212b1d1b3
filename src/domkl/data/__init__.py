"""Tables, series and how they are dealt to learners."""
