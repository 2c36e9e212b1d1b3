"""`domkl data`: the sets of the paper: what they are, where they lie, whether they are whole."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from domkl.cli.source import SET_NAMES
from domkl.errors import DataError, ParameterError

if TYPE_CHECKING:
    from domkl.data.download import Progress
    from domkl.data.fetch import Fetched
    from domkl.data.records import DataSet

SUMMARY = "list, show, verify and fetch the data sets of the paper"
DESCRIPTION = """\
The data sets of the paper. Traffic and temperature ship with domkl; the files of the others are
looked for in --data-dir or else the folder named by DOMKL_DATA, then in the user's cache, which
`domkl data fetch` fills from the UCI repository.
"""
_ABOUT = {
    "list": ("the sets, and where their files are", "List the sets, and where their files are."),
    "show": ("all that is known of a set", "Show all that the catalog knows of a set."),
    "verify": (
        "check the files that are there",
        "Check the files that are there: checksum, columns, rows, numbers, the target's range.\n"
        "Without names, all sets; a set that is missing then fails nothing.",
    ),
    "fetch": (
        "download sets into the cache",
        "Download sets from the UCI repository into the cache, check them and keep them.\n"
        "A download that was interrupted goes on where it stopped.",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands and their options."""
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    made = {}
    for name, (summary, description) in _ABOUT.items():
        made[name] = commands.add_parser(
            name,
            help=summary,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made[name].set_defaults(action=_ACTIONS[name])
    of_sets = f"of {', '.join(SET_NAMES)}"
    made["show"].add_argument("name", metavar="NAME", choices=SET_NAMES, help=of_sets)
    for name in ("verify", "fetch"):
        made[name].add_argument("names", metavar="NAME", nargs="*", help=of_sets)
    made["fetch"].add_argument("--all", action="store_true", help="all sets that do not ship")
    made["fetch"].add_argument(
        "--from",
        metavar="SOURCE",
        dest="source",
        help="archive or table that you have, or another http(s) address",
    )
    for name in ("list", "verify"):
        made[name].add_argument("--data-dir", metavar="DIR", help="look here, then in the cache")
    for command in made.values():
        command.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Run the subcommand."""
    return int(args.action(args))


def _list(args: argparse.Namespace) -> int:
    from domkl.data.catalog import DATASETS
    from domkl.data.store import locate

    rows = []
    for name, data in DATASETS.items():
        path = None if data.is_shipped else locate(data, args.data_dir)
        state = "shipped" if data.is_shipped else "missing" if path is None else "found"
        rows.append({
            "name": name, "task": data.task, "rows": _edition_of(data, path).rows,
            "rows_of_paper": data.paper_rows, "inputs": data.n_inputs, "target": data.target,
            "state": state, "path": None if path is None else str(path),
        })  # fmt: skip
    if args.json:
        print(json.dumps({"sets": rows}))
        return 0
    print(f"{'set':13}{'task':13}{'rows':>7}{'paper':>7}{'inputs':>8}  {'target':15} file")
    for row in rows:
        print(
            f"{row['name']:13}{row['task']:13}{row['rows']:7}{row['rows_of_paper']:7}"
            f"{row['inputs']:8}  {row['target']:15} {row['path'] or row['state']}"
        )
    return 0


def _edition_of(data: "DataSet", path: Any) -> Any:
    """The edition that a path is named after, or the first."""
    name = "" if path is None else path.name.removesuffix(".gz")
    return next((e for e in data.editions if e.file == name), data.editions[0])


def _show(args: argparse.Namespace) -> int:
    from domkl.data.catalog import DATASETS

    data = DATASETS[args.name]
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


def _lines(data: "DataSet") -> Iterator[tuple[str, Any]]:
    """The record of a set, as names and values."""
    origin = data.origin
    yield from {
        "name": data.name, "title": data.title, "task": data.task,
        "target": " or ".join(data.targets), "inputs": data.n_inputs,
        "rows": f"the paper: {data.paper_rows}; usable: {data.usable}",
        "UCI": f"{origin.uci_name}, {origin.page}, doi {origin.doi}", "archive": origin.archive,
        "licence": origin.licence, "citation": origin.citation,
    }.items()  # fmt: skip
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
    rows: list[dict[str, Any]] = []
    for data in _chosen(args.names, is_all=not args.names):
        rows.extend(_verdicts(data, args) or [_absent(data, bool(args.names))])
    if args.json:
        print(json.dumps({"files": rows}))
    for row in () if args.json else rows:
        where = f"{row['path']}: " if row["path"] else ""
        print(f"{row['name']:13}{row['state']:9}{where}{row['found']}")
    return 3 if any(row["state"] == "failed" for row in rows) else 0


def _verdicts(data: "DataSet", args: argparse.Namespace) -> list[dict[str, Any]]:
    """What was found of each of the set's files."""
    from domkl.data.content import check_content
    from domkl.data.store import candidates, read, read_path

    rows: list[dict[str, Any]] = []
    for path in [None] if data.is_shipped else list(candidates(data, args.data_dir)):
        args.interrupts.check()
        row: dict[str, Any] = {"name": data.name, "path": None if path is None else str(path)}
        try:
            found = read(data) if path is None else read_path(data, path)
            checked = check_content(found.content, data, found.edition, found.place)
            row |= {"state": "ok", "sha256": found.sha256, "found": ", ".join(checked)}
        except DataError as error:
            row |= {"state": "failed", "found": str(error)}
        rows.append(row)
    return rows


def _absent(data: "DataSet", is_wanted: bool) -> dict[str, Any]:
    state = "failed" if is_wanted else "missing"
    found = f"no file; domkl data fetch {data.name} brings it"
    return {"name": data.name, "path": None, "state": state, "found": found}


def _fetch(args: argparse.Namespace) -> int:
    from domkl.data.fetch import cached, fetch

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
                with _progress(data.name, args.interrupts) as progress:
                    kept = fetch(data, args.source, progress)
            fetched.append({**kept._asdict(), "path": str(kept.path)})
            _say(kept, args.json)
        except DataError as error:
            failed.append({"name": data.name, "error": str(error)})
            print(f"domkl: error: {error}", file=sys.stderr)
    if args.json:
        print(json.dumps({"fetched": fetched, "failed": failed}))
    return 3 if failed else 0


def _say(kept: "Fetched", as_json: bool) -> None:
    if not as_json:
        print(f"{kept.name:13}{kept.path}: {', '.join(kept.checked)}")


def _chosen(names: list[str], is_all: bool) -> "list[DataSet]":
    from domkl.data.catalog import DATASETS
    from domkl.data.records import data_set

    return [data_set(name, DATASETS) for name in (DATASETS if is_all else dict.fromkeys(names))]


@contextmanager
def _progress(name: str, interrupts: Any) -> "Iterator[Progress]":
    """A bar of bytes on standard error, from the first byte on."""
    from tqdm import tqdm

    bars: list[Any] = []

    def update(done: int, total: int | None) -> None:
        interrupts.check()
        if not bars:
            every = 0.2 if sys.stderr.isatty() else 5.0
            bars.append(
                tqdm(
                    desc=name,
                    initial=done,
                    total=total,
                    unit="B",
                    unit_scale=True,
                    mininterval=every,
                    file=sys.stderr,
                    leave=False,
                    dynamic_ncols=True,
                )
            )
        bars[0].update(done - bars[0].n)

    try:
        yield update
    finally:
        for bar in bars:
            bar.close()


_ACTIONS: dict[str, Callable[[argparse.Namespace], int]] = {
    "list": _list, "show": _show, "verify": _verify, "fetch": _fetch,
}  # fmt: skip
