"""Records lie in their slots; a torn, foreign or overwritten one is as good as none."""

import numpy as np
import pytest

from domkl.mesh.store.history import HEADER, Ring

TYPE = np.dtype([("index", "<i8"), ("check", "<u4"), ("n", "<u4"), ("total", "<f8")])


def records(*indices):
    made = np.zeros(len(indices), TYPE)
    made["index"], made["total"] = indices, np.array(indices) / 7
    return made


@pytest.fixture
def ring(tmp_path):
    made = Ring(tmp_path / "ring", TYPE, 5)
    yield made
    made.close()


def indices(found):
    return found["index"].tolist()


def test_what_is_written_is_read_as_long_as_there_is_room(ring):
    assert indices(ring.read(0, 100)) == indices(ring.newest()) == []
    for k in (3, 4, 6, 7):
        ring.write(records(k))
    assert indices(ring.read(0, 8)) == [3, 4, 6, 7]
    assert indices(ring.read(4, 7)) == [4, 6]
    assert ring.read(6, 7)["total"][0] == 6 / 7
    ring.write(records(8, 9, 10))
    assert indices(ring.newest()) == [6, 7, 8, 9, 10]
    assert indices(ring.read(0, 11)) == [6, 7, 8, 9, 10]
    assert indices(ring.read(9, 30)) == []  # 30 - 5 is above all of them


def test_it_goes_on_after_a_restart_and_begins_anew_with_other_fields(tmp_path, ring):
    ring.write(records(1, 2))
    again = Ring(tmp_path / "ring", TYPE, 5)
    assert indices(again.newest()) == [1, 2]
    again.close()
    other = Ring(tmp_path / "ring", TYPE, 5, step=10)
    assert indices(other.newest()) == []
    other.close()


@pytest.mark.parametrize("byte", range(TYPE.itemsize))
def test_a_damaged_record_is_left_out(tmp_path, ring, byte):
    ring.write(records(1, 2, 3))
    with (tmp_path / "ring").open("r+b") as file:
        file.seek(HEADER + 2 * TYPE.itemsize + byte)
        was = file.read(1)[0]
        file.seek(HEADER + 2 * TYPE.itemsize + byte)
        file.write(bytes([was ^ 0x40]))
    assert indices(ring.newest()) == indices(ring.read(0, 4)) == [1, 3]


def test_no_slot_is_sound_before_it_is_written(tmp_path, ring):
    ring.write(records(4))  # the slots before it are zeros
    assert indices(ring.newest()) == [4]
    with (tmp_path / "ring").open("r+b") as file:
        file.truncate(HEADER + 4 * TYPE.itemsize + 3)  # torn at the end of the file
    assert indices(ring.newest()) == []


def test_where_no_file_can_be_made_it_is_in_memory(tmp_path):
    ring = Ring(tmp_path / "missing" / "ring", TYPE, 4)
    ring.write(records(2))
    assert indices(ring.newest()) == [2]
    ring.close()
