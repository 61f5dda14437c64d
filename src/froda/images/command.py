"""`froda features` and `froda images`: pictures in, features or labels out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from froda.images.names import printable
from froda.images.networks import DEFAULT_LAYER, DEFAULT_NETWORK

if TYPE_CHECKING:
    from froda.images.adaptation import Predictions
    from froda.images.extraction import Step
    from froda.images.features import Features
    from froda.images.listing import Skipped

app = typer.Typer()

_SHOWN = 8

NetworkOption = Annotated[
    str,
    typer.Option(help="efficientnet-lite0 (brings its weights), torchvision:NAME or timm:NAME."),
]
LayerOption = Annotated[
    str,
    typer.Option(
        help="pooled; multi (earlier layers of the default network beside it); or names of parts "
        "of the network, comma-separated."
    ),
]
DeviceOption = Annotated[str, typer.Option(help="Where PyTorch computes.")]


@app.command()
def features(
    folder: Annotated[Path, typer.Argument(help="Pictures, or a folder of them for each class.")],
    out: Annotated[Path, typer.Option(help="File for the features, ending in .npz.")],
    network: NetworkOption = DEFAULT_NETWORK,
    layer: LayerOption = DEFAULT_LAYER,
    device: DeviceOption = "cpu",
) -> None:
    """Compute features of all pictures of a folder.

    The file holds X, files and, for a folder with class folders, y and classes; `froda bench
    folder` reads it. What cannot be read is skipped and listed with the reason. A run that is
    interrupted goes on with the same command. Needs the extra: `pip install "froda[images]"`.
    """
    console = Console()
    with _one_line_errors("froda features"):
        from froda.images.extraction import write_extraction  # noqa: PLC0415 - quick `--help`
        from froda.images.features import load_features  # noqa: PLC0415

        with _extraction_bar(console, _name_of(folder)) as show:
            write_extraction(
                folder, out, network=network, layer=layer, device=device, callback=show
            )
        found = load_features(out)
        n_rows, n_columns = found.X.shape
        console.print(
            f"{n_rows} pictures × {n_columns} features, {len(found.skipped)} files skipped"
        )
        if found.y is None:
            console.print("no class folders: the file has no labels")
        _print_skipped(console, found.skipped)
        console.print(f"features: {printable(str(out))}", soft_wrap=True, markup=False)


@app.command()
def images(  # noqa: PLR0917 - the options of the command
    source: Annotated[Path, typer.Argument(help="A folder of pictures for each class.")],
    target: Annotated[Path, typer.Argument(help="Pictures to label; its folders do not matter.")],
    out: Annotated[Path, typer.Option(help="Folder for the results; runs go on where they were.")],
    method: Annotated[
        str | None, typer.Option(help="A method of `froda bench`; ProgressiveMixture if left out.")
    ] = None,
    known: Annotated[
        list[str] | None,
        typer.Option(help="Classes of the source to use, comma-separated; all when left out."),
    ] = None,
    network: NetworkOption = DEFAULT_NETWORK,
    layer: LayerOption = DEFAULT_LAYER,
    device: DeviceOption = "cpu",
) -> None:
    """Label the pictures of a folder by those of another one, or as unknown.

    Writes predictions.csv (file, label, probability, unknown score), contact_sheet.png (the
    surest unknowns and the surest pictures of each class), skipped.csv and the features. Where
    folders of the target bear names of classes, the labels are scored by them at the end; they
    have no part in anything else. Needs the extra: `pip install "froda[images]"`.
    """
    with _one_line_errors("froda images"):
        _run(
            Console(),
            source,
            target,
            out,
            method=method,
            known=tuple(known) if known else None,
            settings={"network": network, "layer": layer, "device": device},
        )


def _run(
    console: Console,
    source: Path,
    target: Path,
    out: Path,
    *,
    method: str | None,
    known: tuple[str, ...] | None,
    settings: dict[str, str],
) -> None:
    """Check everything, then features, adaptation, results."""
    from froda.images import adaptation, sheet, tables  # noqa: PLC0415 - keeps `--help` quick
    from froda.images.extraction import check_packages  # noqa: PLC0415
    from froda.images.fonts import pick_font  # noqa: PLC0415

    check_packages()
    pick_font("", 12)
    method = _method_name(method or adaptation.DEFAULT_METHOD)
    classes = _check_folders(source, target, out, known)
    of_source = _features_of(console, source, out / "source.npz", True, settings)
    readable = set() if of_source.y is None else set(of_source.y.tolist())
    classes = tuple(name for name in classes if name in readable)
    adaptation.check_classes(classes, printable(str(source)))
    of_target = _features_of(console, target, out / "target.npz", False, settings)
    with _adaptation_bar(console, method) as show:
        predictions = adaptation.adapt(of_source, of_target, classes, method, show)
    tables.write_predictions(out / "predictions.csv", predictions)
    skipped = (("source", of_source.skipped), ("target", of_target.skipped))
    tables.write_skipped(out / "skipped.csv", skipped)
    n_all = len(predictions.files)
    n_unknown = int((predictions.labels == adaptation.UNKNOWN).sum())
    groups = sheet.make_groups(predictions)
    subtitle = f"{n_all} pictures · {n_unknown} unknown · labelled by {_name_of(source)}, {method}"
    with console.status("drawing the contact sheet"):
        sheets = sheet.write_sheets(out, target, groups, _name_of(target), subtitle)
    _print_summary(console, of_source, of_target, predictions, classes)
    for which, items in skipped:
        _print_skipped(console, items, which)
    notes = predictions.notes
    if n_unknown == n_all:
        notes += (
            f"{method} calls every picture unknown, as may happen where the source has few "
            "pictures; the unknown scores rank them all the same. Another --method may tell "
            "them apart, OSVM or OSLPP for example; the features are not computed again.",
        )
    for note in notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    _print_scores(console, adaptation.score_by_folders(predictions))
    for path in (out / "predictions.csv", *sheets):
        console.print(printable(str(path)), markup=False, soft_wrap=True)


def _method_name(word: str) -> str:
    """Return one method of the bench, or say which there are."""
    from froda.bench.methods import select_methods  # noqa: PLC0415

    chosen = select_methods(word)
    if len(chosen) != 1:
        raise ValueError(f"--method takes one method, {word!r} stands for {len(chosen)}.")
    return chosen[0]


def _check_folders(
    source: Path, target: Path, out: Path, known: tuple[str, ...] | None
) -> tuple[str, ...]:
    """Refuse what would fail later; return the classes to use."""
    from froda.images import adaptation  # noqa: PLC0415
    from froda.images.extraction import check_outside, check_writable  # noqa: PLC0415
    from froda.images.listing import list_folder  # noqa: PLC0415

    of_source = list_folder(source, labelled=True)
    of_target = list_folder(target, labelled=False)
    classes = adaptation.choose_classes(of_source.classes, known)
    adaptation.check_classes(classes, printable(str(source)))
    if not of_target.entries:
        raise ValueError(f"the target {printable(str(target))} holds no files to read.")
    check_outside(out, (source, target))
    if out.exists() and not out.is_dir():
        raise ValueError(f"{printable(str(out))} is a file: --out names a folder.")
    check_writable(out)
    return classes


def _features_of(
    console: Console, folder: Path, path: Path, labelled: bool, settings: dict[str, Any]
) -> Features:
    """Extract the features of one folder, or take those that are there."""
    from froda.images.extraction import write_extraction  # noqa: PLC0415
    from froda.images.features import load_features  # noqa: PLC0415

    with _extraction_bar(console, _name_of(folder)) as show:
        write_extraction(folder, path, labelled=labelled, callback=show, **settings)
    return load_features(path)


@contextmanager
def _one_line_errors(command: str) -> Iterator[None]:
    """Print what went wrong as one line and stop."""
    try:
        yield
    except (ImportError, OSError, ValueError) as error:
        typer.echo(f"{command}: {printable(str(error))}", err=True)
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        typer.echo(f"{command}: stopped; the same command goes on from here.", err=True)
        raise typer.Exit(130) from None


@contextmanager
def _extraction_bar(console: Console, name: str) -> Iterator[Callable[[Step], None]]:
    """Show pictures done, per second and the time left."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=console)
    bar = progress.add_task(escape(name), total=None, rate="")
    began = time.perf_counter()

    def show(step: Step) -> None:
        nonlocal began
        fresh = step.done - step.resumed
        if fresh == 0:  # the first step; mistakes found before it leave no empty bar
            began = time.perf_counter()
            progress.reset(bar, total=step.total, completed=step.done)
            progress.start()
            return
        rate = fresh / (time.perf_counter() - began)
        progress.update(bar, completed=step.done, rate=f"{rate:.1f} pictures/s")

    try:
        yield show
    finally:
        progress.stop()


@contextmanager
def _adaptation_bar(console: Console, method: str) -> Iterator[Callable[[Any], None]]:
    """Show that a fit is going on, and its iteration where it has one."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task(f"fitting {method}", total=None)

        def show(record: Any) -> None:
            progress.update(bar, description=f"fitting {method}, iteration {record.iteration}")

        yield show
        progress.update(bar, total=1, completed=1, description=f"fitting {method}")


def _name_of(folder: Path) -> str:
    """Return the last part of a path, also for "." and ".."."""
    return printable(folder.resolve().name or str(folder))


def _print_skipped(console: Console, skipped: tuple[Skipped, ...], where: str = "") -> None:
    """Print the first files that were left out, and how many more there are."""
    for item in skipped[:_SHOWN]:
        line = (
            f"skipped{f' in the {where}' if where else ''}: {printable(item.file)}: {item.reason}"
        )
        console.print(line, markup=False, soft_wrap=True)
    if len(skipped) > _SHOWN:
        console.print(f"… and {len(skipped) - _SHOWN} more")


def _print_summary(
    console: Console,
    source: Features,
    target: Features,
    predictions: Predictions,
    classes: tuple[str, ...],
) -> None:
    """Print how many pictures each label has, and how many files were used and skipped."""
    from froda.images.adaptation import UNKNOWN  # noqa: PLC0415

    labelled = Counter([] if source.y is None else source.y.tolist())
    found = Counter(predictions.labels.tolist())
    n_all = len(predictions.files)
    table = Table("label", caption_justify="left")
    for name in ("source", "target", "share"):
        table.add_column(name, justify="right")
    for name in (*predictions.classes, UNKNOWN):
        n_source = str(labelled[name]) if name in classes else "–"
        cells = (n_source, str(found[name]), f"{100 * found[name] / n_all:.1f} %")
        style = "bold" if name == UNKNOWN else None
        table.add_row(escape(printable(name)), *cells, style=style)
    table.add_section()
    n_used = sum(labelled[name] for name in classes)
    table.add_row("files used", str(n_used), str(n_all), "")
    left_out = sum(labelled.values()) - n_used
    if left_out:
        table.add_row("of other classes", str(left_out), "–", "")
    table.add_row("files skipped", str(len(source.skipped)), str(len(target.skipped)), "")
    console.print(table)


def _print_scores(console: Console, scores: dict[str, float] | None) -> None:
    """Print the scores by the names of the target's folders, where there are any."""
    if scores is None:
        return
    table = Table(
        caption="scored with the names of the target's folders: classes absent from the source "
        "are the unknowns; in percent",
        caption_justify="left",
    )
    shown = {name: value for name, value in scores.items() if not isnan(value)}
    for name in shown:
        table.add_column(name, justify="right")
    table.add_row(*(f"{100 * value:.1f}" for value in shown.values()))
    console.print(table)
