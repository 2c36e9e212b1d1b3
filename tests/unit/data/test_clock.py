"""Times in cells, the clock of ticks, and calendar inputs."""

import numpy as np
import pytest

from domkl.data.cells import Problems, sheet_of
from domkl.data.clock import DAY, HOUR, MINUTE, NO_TIME, Clock, calendar, clock_of, times_of
from domkl.errors import DataError, ParameterError


def times(text, columns=("t",), form=None):
    problems = Problems()
    found = times_of(sheet_of(text.encode(), "f.csv", problems), columns, form)
    problems.check()
    return found


def at(text):
    return int(np.datetime64(text, "ms").astype(np.int64))


@pytest.mark.parametrize(
    "cell",
    [
        "2024-03-01 14:30", "2024-03-01T14:30:00Z", "2024-03-01T15:30:00+01:00",
        "2024/3/1 14:30", "20240301T1430", "1709303400", "1709303400000", "2024-03-01 14.30",
    ],
)  # fmt: skip
def test_one_time_in_many_forms(cell):
    assert times(f"t;x\n{cell};1\n")[0] == at("2024-03-01T14:30")


def test_seconds_of_any_length_are_a_time_and_eight_digits_a_date():
    cells = ["99999.5", "100800.0", "-50400.0", "1.008e+5", "20240301"]
    expected = [99_999_500, 100_800_000, -50_400_000, 100_800_000, at("2024-03-01")]
    assert times("t;x\n" + "".join(f"{cell};1\n" for cell in cells)).tolist() == expected


def test_day_and_month_are_told_by_the_column():
    assert times("t;x\n01/02/2024;1\n13/02/2024;1\n")[0] == at("2024-02-01")
    assert times("t;x\n01/02/2024;1\n01/13/2024;1\n")[0] == at("2024-01-02")
    assert times("t;x\n1.2.2024 7:05;1\n")[0] == at("2024-02-01T07:05")
    with pytest.raises(DataError, match=r"line 2, column 't': .* give --time-format"):
        times("t;x\n01/02/2024;1\n")
    assert times("t;x\n01/02/2024;1\n", form="%m/%d/%Y")[0] == at("2024-01-02")


def test_date_and_time_of_day_in_two_columns():
    assert times("d;h;x\n10/03/2004;18.00.00;1\n31/03/2004;;1\n31/03/2004;7.05.00;2\n", ("d", "h"))[
        :2
    ].tolist() == [
        at("2004-03-10T18:00"),
        NO_TIME,
    ]


def test_parts_of_a_time():
    text = "Year,month,DAY,hour\n2024,2,29,24\n2024,NA,1,0\n"
    assert times(text, ("Year", "month", "DAY", "hour")).tolist() == [at("2024-03-01"), NO_TIME]


def test_all_bad_times_are_told():
    with pytest.raises(
        DataError, match=r"2 problems: .*line 2, column 'month'.*'13'.*line 3, column 'day'"
    ):
        times("year,month,day\n2024,13,1\n2023,2,29\n", ("year", "month", "day"))
    with pytest.raises(DataError, match=r"line 3, column 't': must be a time, got 'noon'"):
        times("t;x\n2024-01-01;1\nnoon;2\n")
    with pytest.raises(ParameterError, match="time must have a year"):
        times("month,day\n1,1\n", ("month", "day"))


def test_step_is_that_of_most_times():
    hours = np.array([0, 1, 2, 5, 6, 7, 9]) * HOUR + 7 * MINUTE
    clock = clock_of([hours])
    assert (clock.start, clock.step) == (7 * MINUTE, HOUR)
    assert clock.ticks(hours).tolist() == [0, 1, 2, 5, 6, 7, 9]


def test_step_of_irregular_times_is_round():
    rng = np.random.default_rng(0)
    ideal = np.arange(200) * 30 * MINUTE
    clock = clock_of([ideal + rng.integers(-4 * MINUTE, 4 * MINUTE, 200)])
    assert clock.step == 30 * MINUTE
    assert clock.ticks(ideal).tolist() == list(range(200))


def test_step_of_streams_that_are_mostly_gaps():
    assert clock_of([np.array([0, 2, 5, 9, 10, 14]) * HOUR]).step == HOUR
    with pytest.raises(DataError, match="at least two times"):
        clock_of([np.array([0])])
    assert clock_of([np.array([5 * HOUR])], HOUR) == Clock(5 * HOUR, HOUR)


@pytest.mark.parametrize("name", ["hour", "weekday", "yearday"])
def test_calendar_does_not_depend_on_its_company(name):
    when = np.arange(0, 400 * DAY, 7 * HOUR)
    together = calendar(name, when)
    alone = np.concatenate([calendar(name, when[i : i + 1]) for i in range(len(when))])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_allclose(((2 * together - 1) ** 2).sum(axis=1), 1)


def test_weekdays_begin_with_monday():
    monday = at("2024-01-01")
    assert calendar("weekday", np.array([monday]))[0].tolist() == [0.5, 1.0]
