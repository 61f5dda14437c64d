"""`froda bench`: run a comparison, then make tables and figures of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from typer.core import TyperGroup


class _RunByDefault(TyperGroup):
    """`froda bench DATASET` is short for `froda bench run DATASET`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the command in front where it was left out."""
        if args and args[0] not in self.commands and args[0] not in ("--help",):
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_RunByDefault,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Compare methods on a data set: `froda bench DATASET --data DIR --out DIR`.",
)

Folder = Annotated[Path, typer.Argument(help="Folder of results, the --out of a run.")]


@app.command()
def run(  # noqa: PLR0917 - the options of the command
    dataset: Annotated[str, typer.Argument(help="Name of the data set, `digits` for one.")],
    out: Annotated[Path, typer.Option(help="Folder for the results; runs go on where they were.")],
    data: Annotated[
        Path | None, typer.Option(help="Folder with the files of the data set.")
    ] = None,
    features: Annotated[str | None, typer.Option(help="Kind of features.")] = None,
    split: Annotated[str | None, typer.Option(help="Name of the split of the classes.")] = None,
    methods: Annotated[
        str,
        typer.Option(
            help="Names or groups (all, ours, baselines, deep, epsilon, oslpp), comma-separated."
        ),
    ] = "all",
    pairs: Annotated[
        str | None, typer.Option(help="source-target pairs, comma-separated; all when left out.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 1,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    jobs: Annotated[
        int, typer.Option(min=1, help="Fits at a time, one thread each if several.")
    ] = 1,
) -> None:
    """Run every method on every pair of domains and store one row for each.

    A row that is there already is not computed again, so an interrupted run goes on with the
    same command. A method that fails is stored and shown with its reason. The methods of the
    group `deep` need PyTorch (`pip install "froda[deep]"`); without it `all` leaves them out.
    """
    console = Console()
    try:
        _run(
            console,
            dataset,
            out,
            data,
            features=features,
            split=split,
            methods=methods,
            pairs=pairs,
            seeds=range(first_seed, first_seed + seeds),
            jobs=jobs,
        )
    except (ImportError, OSError, ValueError) as error:
        typer.echo(f"froda bench: {error}", err=True)
        raise typer.Exit(1) from error
    except KeyboardInterrupt as stop:
        typer.echo("froda bench: stopped; the same command goes on where this one was.", err=True)
        raise typer.Exit(130) from stop


def _run(
    console: Console,
    dataset: str,
    out: Path,
    data: Path | None,
    *,
    features: str | None,
    split: str | None,
    methods: str,
    pairs: str | None,
    seeds: range,
    jobs: int,
) -> None:
    """Check everything, then run with progress."""
    from froda.bench.methods import DEEP, has_torch, select_methods  # noqa: PLC0415 - quick `--help`
    from froda.bench.runner import make_jobs, run_jobs, task_of  # noqa: PLC0415
    from froda.bench.store import Store  # noqa: PLC0415

    chosen = make_jobs(
        dataset,
        data,
        features=features,
        split=split,
        pairs=_parse_pairs(pairs),
        methods=select_methods(methods),
        seeds=seeds,
    )
    tasks = {(job.source, job.target, job.seed): job for job in chosen}
    for job in tasks.values():  # errors in files or split come before any fit
        description = task_of(job, data).description
    console.print(f"{len(chosen)} rows, {len(tasks)} tasks; the last one: {description}")
    if "all" in methods.split(",") and not has_torch():
        left_out = f"left out: {', '.join(DEEP)}, which need PyTorch"
        console.print(f'{left_out} (pip install "froda[deep]")', markup=False)
    store = Store(out, for_writing=True)
    n_there = sum(store.has(job) for job in chosen)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    # Some rows take minutes, others less than a second: the time left is of all rows so far.
    with Progress(*columns, console=console, speed_estimate_period=1e9) as progress:
        bar = progress.add_task("fitting", total=len(chosen), completed=n_there)
        for job, _ in run_jobs(chosen, store, data, jobs):
            progress.update(bar, advance=1, description=f"{job.method}, {job.pair}")
    keys = {job.file_name for job in chosen}
    rows = [row for row in store.rows() if _name_of(row) in keys]
    for row in rows:
        if row["status"] != "ok":
            where = f"{row['method']}, {row['source']} → {row['target']}, seed {row['seed']}"
            console.print(f"failed: {where}: {row['reason']}", markup=False, soft_wrap=True)
    console.print(_summary(rows))
    console.print(f"results: {store.write_summary()}", soft_wrap=True)


def _name_of(row: dict[str, Any]) -> str:
    """Return the file name of a row's job."""
    from dataclasses import fields  # noqa: PLC0415

    from froda.bench.store import Job  # noqa: PLC0415

    return Job(**{field.name: row[field.name] for field in fields(Job)}).file_name


def _parse_pairs(text: str | None) -> list[tuple[str, str]] | None:
    """Return the pairs of a text such as ``amazon-webcam,webcam-amazon``."""
    return None if text is None else [_parse_pair(part) for part in text.split(",")]


def _parse_pair(text: str) -> tuple[str, str]:
    """Return source and target of a text such as ``amazon-webcam``."""
    source, dash, target = text.strip().partition("-")
    if not (source and dash and target):
        raise ValueError(f"a pair is written source-target, got {text!r}.")
    return source, target


def _summary(rows: list[dict[str, Any]]) -> Table:
    """Return the mean of each method over pairs and seeds."""
    names = ("OS", "OS*", "UNK", "HOS", "AUROC", "OSCR")
    caption = "means over pairs and seeds, in percent"
    table = Table(caption=caption, caption_justify="left", pad_edge=False)
    table.add_column("method", no_wrap=True, min_width=18)  # the longest name
    for name in (*names, "sec.", "failed"):
        table.add_column(name, justify="right")
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        good = [row for row in own if row["status"] == "ok"]
        cells = [f"{100 * sum(r[n] for r in good) / len(good):.1f}" if good else "–" for n in names]
        seconds = sum(row["seconds"] for row in own) / len(own)
        table.add_row(method, *cells, f"{seconds:.2f}", str(len(own) - len(good)))
    return table


@app.command()
def tables(
    folder: Folder,
    out: Annotated[
        Path | None, typer.Option(help="Where to write; FOLDER/tables if left out.")
    ] = None,
) -> None:
    """Write methods × pairs as Markdown, LaTeX and CSV, best in bold.

    Where data and split are those of the paper, its published figures stand beside ours.
    """
    try:
        from froda.bench.store import Store  # noqa: PLC0415
        from froda.bench.tables import write_sheets  # noqa: PLC0415

        written = write_sheets(Store(folder).rows(), out or folder / "tables")
    except (ImportError, OSError, ValueError) as error:
        typer.echo(f"froda bench tables: {error}", err=True)
        raise typer.Exit(1) from error
    for path in written:
        typer.echo(str(path))


@app.command()
def figures(
    folder: Folder,
    out: Annotated[
        Path | None, typer.Option(help="Where to write; FOLDER/figures if left out.")
    ] = None,
) -> None:
    """Write figures: epsilon, threshold, score distributions, wins, runtime.

    The epsilon curve needs a run with `--methods epsilon`.
    """
    try:
        from froda.bench.figures import write_figures  # noqa: PLC0415
        from froda.bench.store import Store  # noqa: PLC0415

        written = write_figures(Store(folder).rows(), out or folder / "figures")
    except (ImportError, OSError, ValueError) as error:
        typer.echo(f"froda bench figures: {error}", err=True)
        raise typer.Exit(1) from error
    for path in written:
        typer.echo(str(path))


@app.command()
def runtimes(  # noqa: PLR0917 - the options of the command
    dataset: Annotated[str, typer.Argument(help="Name of the data set.")] = "digits",
    data: Annotated[
        Path | None, typer.Option(help="Folder with the files of the data set.")
    ] = None,
    features: Annotated[str | None, typer.Option(help="Kind of features.")] = None,
    split: Annotated[str | None, typer.Option(help="Name of the split of the classes.")] = None,
    pair: Annotated[
        str | None, typer.Option(help="source-target; the first pair when left out.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How often each method is fitted.")] = 5,
) -> None:
    """Time FRODA and ATI in turns within one run and print the ratio.

    Without a data set it takes the digits, which need no files. The paper reports one order of
    magnitude between the two.
    """
    from froda.bench.runner import make_jobs, task_of  # noqa: PLC0415
    from froda.bench.runtimes import REFERENCE, compare_runtimes  # noqa: PLC0415

    try:
        job = make_jobs(
            dataset,
            data,
            features=features,
            split=split,
            pairs=None if pair is None else [_parse_pair(pair)],
            methods=[REFERENCE],
            seeds=[0],
        )[0]
        comparison = compare_runtimes(rounds, task_of(job, data))
    except (ImportError, OSError, ValueError) as error:
        typer.echo(f"froda bench runtimes: {error}", err=True)
        raise typer.Exit(1) from error
    table = Table("method", "median seconds", "least to most", f"ratio to {REFERENCE}")
    table.caption = comparison.description
    for method, seconds in comparison.seconds.items():
        spread = f"{min(seconds):.2f} to {max(seconds):.2f}"
        ratio = f"{comparison.ratio(method):.2f}"
        table.add_row(method, f"{comparison.median(method):.2f}", spread, ratio)
    Console().print(table)
