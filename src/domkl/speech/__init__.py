"""Speech: what leaves a learner, made of what it is.

`local_step` writes a message; a speech turns it into what is *said*: the numbers that every
neighbor decodes. Nothing else turns a state into what leaves a learner. All hosts deliver what was
said, and give the learner's own words back to `merge` as its neighbors have them.
"""
