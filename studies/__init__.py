"""Studies that are not part of the installed package: `domkl reproduce stations` and `ablation`.

Each module is a section of a page, of the same form as those of `domkl.experiments.reproduce`:
`stations`, `newcomer`, `day_ahead`, `homes` and `parking`, and `ablation` by itself. `nodes` has
their calculations.
"""
