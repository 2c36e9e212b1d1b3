"""Table I on the real Weather data, reduced: ten trials.

The standard error of ten trials is below 2 % here, and the distances to the printed numbers are 9,
6 and 3 %: a right program fails once in some thousand seeds, and the seed is fixed.
"""

import pytest

from domkl.experiments.options import Setting
from domkl.experiments.reproduce import paper, table_1
from domkl.experiments.reproduce.document import percent
from domkl.experiments.reproduce.session import Session
from domkl.experiments.store import Store


@pytest.mark.parametrize("rho", [10, 100, 1000])
def test_weather_comes_out_again_within_15_percent(data_dir, tmp_path, rho):
    session = Session(Setting(n_trials=10), Store(tmp_path), data_dir)
    task = session.curves("weather", "", table_1.learner(rho, 10))
    ours = percent(session[task], paper_start=True)
    theirs, _ = paper.TABLE_1[10, rho]["weather"]
    assert ours == pytest.approx(theirs, rel=0.15)
