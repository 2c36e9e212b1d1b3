"""Case studies, which are not part of the installed package: `domkl reproduce stations`.

Each module is a section of the page, of the same form as those of `domkl.experiments.reproduce`:
`stations`, `newcomer`, `day_ahead`, `homes` and `parking`. `nodes` has their calculations.
"""
