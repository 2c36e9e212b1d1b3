"""Reading: all columns of beijing-air, 420 768 rows in twelve packed files, from raw files.

    python benchmarks/bench_reader.py FOLDER [--repeat N]

FOLDER has the files PRSA_Data_STATION_20130301-20170228.csv.gz. Prints the seconds of CPU of each
repetition, beside those of Python's own csv module, which only splits the same files into cells.
"""

import argparse
import csv
import gzip
import io
import time
from pathlib import Path

import domkl
from domkl.data.nodes import node_files

NAME = "PRSA_Data_{node}_20130301-20170228.csv.gz"
FORM = domkl.Form(time=("year", "month", "day", "hour"))


def ours(path):
    table = domkl.read_nodes(path, "PM2.5", form=FORM)
    return table.facts["rows_in_file"], len(table.columns)


def only_split(path):
    n_rows = 0
    for _, file in node_files(path):
        text = io.StringIO(gzip.decompress(file.read_bytes()).decode())
        columns = [*zip(*csv.reader(text), strict=True)]
        n_rows += len(columns[0]) - 1
    return n_rows, len(columns)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    found = {}
    for _ in range(args.repeat):
        for read in (ours, only_split):
            start = time.process_time()
            n_rows, n_columns = read(args.folder / NAME)
            found.setdefault(read, []).append(time.process_time() - start)
    seconds = " ".join(f"{each:.2f}" for each in found[ours])
    split = " ".join(f"{each:.2f}" for each in found[only_split])
    print(f"{n_rows} rows x {n_columns} cells: read_nodes {seconds} s of CPU, csv alone {split} s")
    print(f"least over least: {min(found[ours]) / min(found[only_split]):.2f}")


if __name__ == "__main__":
    main()
