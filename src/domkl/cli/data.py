"""`domkl data`: list, show, verify and fetch the data sets of the catalog."""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from domkl.cli.options import add_commands, option, switch
from domkl.cli.output import Bar
from domkl.data.catalog import DATASETS, DataSet, Edition, find
from domkl.errors import DataError, ParameterError

SUMMARY = "list, show, verify and fetch data sets"
DESCRIPTION = """\
List, show, verify and fetch data sets: those of the paper, and three whose nodes have streams of
their own. Traffic, temperature and parking ship with domkl. The files of the others are looked for
in --data-dir or, without it, in the folder named by DOMKL_DATA, and then in the user's cache, which
`domkl data fetch` fills from public servers.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands and their options."""
    made = add_commands(parser, (_list, _show, _verify, _fetch))
    one_of = f"one of {', '.join(DATASETS)}"
    made["show"].add_argument("name", metavar="NAME", choices=tuple(DATASETS), help=one_of)
    for name in ("verify", "fetch"):
        made[name].add_argument("names", metavar="NAME", nargs="*", help=one_of)
    switch(made["fetch"], "--all", "fetch all data sets that do not ship with domkl")
    source = "a local archive or table, or another http(s) address"
    option(made["fetch"], "--from", "SOURCE", source, dest="source")
    for name in ("list", "verify"):
        option(made[name], "--data-dir", "DIR", "look here first, then in the cache")
    for command in made.values():
        switch(command, "--json", "print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Run the subcommand."""
    return int(args.verb(args))


def _list(args: argparse.Namespace) -> int:
    """List the data sets and where their files are."""
    from domkl.data.cache import locate

    rows = []
    for name, data in DATASETS.items():
        path = None if data.is_shipped else locate(data, args.data_dir)
        state = "shipped" if data.is_shipped else "missing" if path is None else "found"
        path = path.parent if path is not None and data.stations else path
        rows.append({
            "name": name, "task": data.task, "rows": _edition_of(data, path).rows,
            "rows_of_paper": data.paper_rows, "inputs": data.n_inputs, "target": data.target,
            "state": state, "path": None if path is None else str(path),
        })  # fmt: skip
    if args.json:
        print(json.dumps({"sets": rows}))
        return 0
    print(f"{'set':17}{'task':13}{'rows':>7}{'paper':>7}{'inputs':>8}  {'target':19} file")
    for row in rows:
        print(
            f"{row['name']:17}{row['task']:13}{row['rows']:7}{row['rows_of_paper'] or '-':>7}"
            f"{row['inputs']:8}  {row['target']:19} {row['path'] or row['state']}"
        )
    return 0


def _edition_of(data: DataSet, path: Path | None) -> Edition:
    """The edition that has the name of this file, or else the first edition."""
    name = "" if path is None else path.name.removesuffix(".gz")
    return next((e for e in data.editions if e.file == name), data.editions[0])


def _show(args: argparse.Namespace) -> int:
    """Show the catalog's record of a data set."""
    data = find(args.name)
    if args.json:
        record = asdict(data)
        record["origin"] = {**data.origin._asdict(), "page": data.origin.page}
        for edition, made in zip(data.editions, record["editions"], strict=True):
            made["authors"] = edition.authors._asdict()
        print(json.dumps(record))
        return 0
    for name, value in _lines(data):
        print(f"{name:13}{value}".rstrip())
    return 0


def _lines(data: DataSet) -> Iterator[tuple[str, Any]]:
    """The record of a data set, as names and values."""
    origin = data.origin
    yield from {
        "name": data.name, "title": data.title, "task": data.task,
        "target": " or ".join(data.targets), "inputs": data.n_inputs,
        "rows": f"the paper: {data.paper_rows or 'none'}; usable: {data.usable}",
        "UCI": f"{origin.uci_name}, {origin.page}, doi {origin.doi}", "archive": origin.archive,
        "licence": origin.licence, "citation": origin.citation,
    }.items()  # fmt: skip
    if data.stations:
        yield "learners", f"{len(data.stations)}, a station each; degrees north and east:"
        for name, latitude, longitude in data.stations:
            yield "", f"{name}: {latitude:.3f}, {longitude:.3f}" if latitude == latitude else name
    for edition in data.editions:
        yield "", ""
        header = "with a header" if edition.has_header else "without a header"
        yield from {
            "edition": edition.name, "  file": f"{edition.file} (or .gz)", "  is": edition.state,
            "  size": f"{edition.rows} rows x {len(edition.columns)} columns, {header}",
            "  sha256": edition.sha256 or "not known", "  scale": edition.authors.words,
        }.items()  # fmt: skip
    yield "", ""
    yield "ranges", f"declared by {data.ranges_from}"
    for column, (low, high) in {**data.ranges, **data.editions[0].ranges}.items():
        yield "", f"{column}: {low:g} to {high:g}"


def _verify(args: argparse.Namespace) -> int:
    """Check the files that are present.

    Checksum, columns, rows, numbers, and the target's range. Without names, check all data sets; a
    missing file is then not a failure.
    """
    rows: list[dict[str, Any]] = []
    for data in _chosen(args.names, is_all=not args.names):
        rows.extend(_verdicts(data, args) or [_absent(data, bool(args.names))])
    if args.json:
        print(json.dumps({"files": rows}))
    for row in () if args.json else rows:
        where = f"{row['path']}: " if row["path"] else ""
        print(f"{row['name']:12} {row['state']:9}{where}{row['found']}")
    return 3 if any(row["state"] == "failed" for row in rows) else 0


def _verdicts(data: DataSet, args: argparse.Namespace) -> list[dict[str, Any]]:
    """The outcome of the checks for each file of a data set."""
    from domkl.data.cache import candidates, read, read_path
    from domkl.data.tables import check_content

    rows: list[dict[str, Any]] = []
    for path in [None] if data.is_shipped else list(candidates(data, args.data_dir)):
        args.interrupts.check()
        row: dict[str, Any] = {"name": data.name, "path": None if path is None else str(path)}
        try:
            found = read(data)[0] if path is None else read_path(data, path)
            checked = check_content(found.content, data, found.edition, found.place)
            row |= {"state": "ok", "sha256": found.sha256, "found": ", ".join(checked)}
        except DataError as error:
            row |= {"state": "failed", "found": str(error)}
        rows.append(row)
    n_files = len({row["path"] and Path(row["path"]).name for row in rows})
    if rows and data.stations and n_files < len(data.editions):
        rows.append(_absent(data, is_wanted=True))
    return rows


def _absent(data: DataSet, is_wanted: bool) -> dict[str, Any]:
    state = "failed" if is_wanted else "missing"
    found = (
        f"{'not all files' if data.stations else 'no file'}; domkl data fetch {data.name} brings it"
    )
    return {"name": data.name, "path": None, "state": state, "found": found}


def _fetch(args: argparse.Namespace) -> int:
    """Download data sets into the cache.

    They are checked first. When a connection is lost, the download goes on where it stopped.
    """
    from domkl.data.cache import cached, fetch

    if bool(args.names) == args.all:
        raise ParameterError("fetch takes names of data sets or --all")
    if args.source is not None and len(args.names) != 1:
        raise ParameterError(f"--from is for one data set, got {len(args.names) or 'all'}")
    fetched: list[dict[str, Any]] = []
    failed: list[dict[str, str]] = []
    for data in _chosen(args.names, is_all=args.all):
        if data.is_shipped:
            print(f"{data.name} ships with domkl; there is nothing to fetch", file=sys.stderr)
            continue
        try:
            kept = cached(data) if args.source is None else None
            if kept is None:
                with Bar(args.interrupts, of_bytes=True) as bar:
                    kept = fetch(data, args.source, partial(bar.update, data.name))
            fetched.append({**kept._asdict(), "path": str(kept.path)})
            if not args.json:
                print(f"{kept.name:12} {kept.path}: {', '.join(kept.checked)}")
        except DataError as error:
            failed.append({"name": data.name, "error": str(error)})
            print(f"domkl: error: {error}", file=sys.stderr)
    if args.json:
        print(json.dumps({"fetched": fetched, "failed": failed}))
    return 3 if failed else 0


def _chosen(names: list[str], is_all: bool) -> list[DataSet]:
    return [find(name) for name in (DATASETS if is_all else dict.fromkeys(names))]
