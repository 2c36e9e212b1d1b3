"""The paper's table, figures and claims, done again: one module each.

`lab.py` holds what all experiments share, `work.py` and `store.py` what is computed and kept,
`document.py` what a section of the report is, `figures.py` and `page.py` how it is shown.
"""
