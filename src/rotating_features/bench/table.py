"""Rows for reading."""

from collections.abc import Sequence

from rich import box
from rich.table import Table

from rotating_features.bench.harness import Row


def table(rows: Sequence[Row]) -> Table:
    """Work, variant, time with its spread, memory, and how many times faster than the peer."""
    shown = Table(box=box.SIMPLE, collapse_padding=True, pad_edge=False)
    shown.add_column("work", overflow="fold")
    shown.add_column("variant", overflow="fold")
    for name in ("ms", "spread", "MB", "times faster"):
        shown.add_column(name, justify="right")
    work = None
    for row in rows:
        spread = f"{_number(row['low_ms'])} - {_number(row['high_ms'])}"
        times = "peer" if row["variant"] == row["peer"] else _number(row["times_faster"])
        cells = _number(row["median_ms"]), spread, _number(row["peak_mb"], whole=True), times
        shown.add_row("" if row["work"] == work else str(row["work"]), str(row["variant"]), *cells)
        work = row["work"]
    return shown


def _number(value: object, *, whole: bool = False) -> str:
    if not isinstance(value, float | int):
        return "-"
    return f"{value:,.0f}" if whole or value >= 1000 else f"{value:.3g}"
