"""Datasets as files."""

import dataclasses
from pathlib import Path

import tyro
from matplotlib.figure import Figure
from rich.progress import DownloadColumn, Progress

from rotating_features._check import InputError
from rotating_features._files import replacing
from rotating_features.arguments import DataArgs
from rotating_features.commands.screen import PROG, console
from rotating_features.data import PHOTOGRAPHS, Split, npz_name, write_npz
from rotating_features.data.fetch import FILES, fetch
from rotating_features.experiments.build import check_options, make_dataset
from rotating_features.experiments.config import DataConfig, EvaluateConfig
from rotating_features.experiments.folders import check_writable
from rotating_features.experiments.photo_pictures import photo_sheet
from rotating_features.experiments.photo_run import OPTIONS
from rotating_features.experiments.pictures import COLUMNS, first_images
from rotating_features.plots.colors import color_image, color_labels
from rotating_features.plots.grid import sheet
from rotating_features.plots.semantic import color_classes


def data_command(argv: list[str]) -> int:
    args = tyro.cli(DataArgs, args=argv, prog=f"{PROG} data")
    names = {field.name for field in dataclasses.fields(DataConfig)}
    config = DataConfig(**{name: getattr(args, name) for name in names})
    if args.picture is not None:
        return _draw(config, args.picture)
    if args.out is None:
        raise InputError("Where to? Pass --out FOLDER for files, or --picture FILE.png to look.")
    if args.fetch:
        return _fetch(args.dataset, args.out)
    if args.dataset in PHOTOGRAPHS:
        raise InputError(
            f"{args.dataset} has photographs, which npz files of one size cannot hold.\n"
            "  Use their own files, with --data.path; to look at them: --picture FILE.png."
        )
    if args.dataset.startswith("mnist"):
        raise InputError(
            f"{args.dataset} has classes, which npz files of this format cannot hold.\n"
            "  Use MNIST's own files, with --data.path; see --fetch."
        )
    paths: dict[Split, Path] = {
        split: args.out / npz_name(args.dataset, split) for split in args.splits
    }
    if there := [str(path) for path in paths.values() if path.exists()]:
        raise InputError(
            f"{', '.join(there)} exists already.\n  Remove it first, or write to another --out."
        )
    datasets = {split: make_dataset(config, split) for split in paths}
    check_writable(args.out)
    with Progress(console=console) as bar:
        for split, path in paths.items():
            dataset = datasets[split]
            task = bar.add_task(f"drawing {split}", total=len(dataset))
            write_npz(dataset, path, progress=lambda n, task=task: bar.update(task, completed=n))
    console.print("Written:", *(f"  {path}" for path in paths.values()), sep="\n", soft_wrap=True)
    return 0


def _draw(config: DataConfig, path: Path) -> int:
    """Images, depth where there is any, objects and classes."""
    if path.suffix.lower() != ".png":
        raise InputError(f"--picture should be a PNG, as FILE.png, got {path}.")
    if path.exists():
        raise InputError(f"{path} exists already.\n  Remove it first, or draw another --picture.")
    if config.dataset in PHOTOGRAPHS:
        check_options(config, OPTIONS)
        figure = photo_sheet({}, config, EvaluateConfig(protocols=("rf2023",)), config.dataset)
        return _save(figure, path)
    image, instances, classes = first_images(make_dataset(config, "test"), COLUMNS)
    rows = {"image": color_image(image)}
    if image.shape[1] == 4:
        rows["depth"] = color_image(image[:, 3:])
    rows["objects"] = color_labels(instances)
    if classes is not None:
        rows["classes"] = color_classes(classes)
    return _save(sheet(rows, title=config.dataset), path)


def _save(figure: Figure, path: Path) -> int:
    with replacing(path) as partial:
        figure.savefig(partial, format="png")
    console.print(f"Written: {path}", soft_wrap=True)
    return 0


def _fetch(dataset: str, out: Path) -> int:
    name = "mnist" if dataset.startswith("mnist") else dataset
    if name in PHOTOGRAPHS:
        raise InputError(
            f"{dataset} cannot be fetched. Unpack its files, and name their folder with "
            "--data.path; what is missing there is said."
        )
    if name not in FILES:
        raise InputError(f"{dataset} is drawn, so there is nothing to fetch. Leave --fetch.")
    check_writable(out)
    with Progress(*Progress.get_default_columns(), DownloadColumn(), console=console) as bar:
        for file in FILES[name]:
            task = bar.add_task(file.name, total=file.size)
            fetch(
                file,
                out,
                lambda have, total, task=task: bar.update(task, completed=have, total=total),
            )
    console.print(f"Its files are in {out}. Use them with --data.path {out}", soft_wrap=True)
    return 0
