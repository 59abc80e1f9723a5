"""Input checks with messages that say what was wanted, what came and what to do."""

from torch import Tensor


class InputError(ValueError):
    """A caller's mistake, told in words meant for a person.

    The command line prints it without a traceback; library users can catch it as ``ValueError``.
    """


def check_shape(name: str, x: Tensor, axes: str, *, hint: str = "", **sizes: int) -> None:
    """Raise ``InputError`` unless ``x`` has the named ``axes`` and ``sizes``, none being empty."""
    names = axes.split()
    fits = x.ndim == len(names) and all(
        size == sizes.get(axis, size) for axis, size in zip(names, x.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join(f"{axis}={sizes[axis]}" if axis in sizes else axis for axis in names)
        raise InputError(
            f"{name} should have shape ({wanted}), got {tuple(x.shape)}.{_advice(hint)}"
        )
    if 0 in x.shape:
        raise InputError(
            f"{name} is empty: its shape is {tuple(x.shape)}.{_advice('Pass at least one item.')}"
        )


def check_finite(name: str, x: Tensor) -> None:
    """Raise ``InputError`` if ``x`` has a value that is not finite."""
    if not x.isfinite().all():
        bad = int((~x.isfinite()).sum())
        raise InputError(
            f"{name} should hold finite numbers, got {bad} that are nan or infinite."
            + _advice("Look for a division by zero, or repair them with torch.nan_to_num.")
        )


def check_image_values(name: str, x: Tensor) -> None:
    """Raise ``InputError`` if ``x`` has a value that is not finite or is negative."""
    check_finite(name, x)
    if (low := float(x.min())) < 0:
        raise InputError(
            f"{name} should hold values of at least 0, got a minimum of {low:.4g}."
            + _advice(
                "A length cannot be negative: scale images to [0, 1], do not standardise them."
            )
        )


def _advice(hint: str) -> str:
    return f"\n  {hint}" if hint else ""
