"""One training step: forward, backward, clipping, Adam."""

from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.func import functional_call

from rotating_features.machine import Precision, tune_cpu
from rotating_features.models import AutoEncoder
from rotating_features.ops.adam import adam_
from rotating_features.ops.beside import Beside, run_beside


class Step:
    """The training step of one model.

    All weights live in one flat tensor, of which the model's own are views. So gradients are
    written once, next to each other, and clipping and Adam take two kernels. Those that need no
    gradient stay as they are. On a GPU, TF32 and cuDNN's search for the best kernels are switched
    on for the whole process; on a CPU, small numbers are flushed to zero.

    Args:
        model: On its device already. It is trained in place.
        grad_clip: Largest norm of all gradients together, or None.
        weight_decay: L2 penalty inside Adam.
        precision: Of the convolutions; weights, norms and the loss stay in float32.
        compiled: Whether to run through ``torch.compile``.
    """

    def __init__(
        self,
        model: AutoEncoder,
        *,
        grad_clip: float | None = 0.1,
        weight_decay: float = 0.0,
        precision: Precision = "float32",
        compiled: bool = False,
    ) -> None:
        self.model = model.train()
        self.device = next(model.parameters()).device
        self.dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
        self.loss = _Loss(model, self.dtype)
        self.grad_clip, self.weight_decay, self.compiled = grad_clip, weight_decay, compiled
        if self.device.type == "cuda":
            torch.set_float32_matmul_precision("high")  # TF32
            torch.backends.cudnn.allow_tf32 = True
            torch.backends.cudnn.benchmark = True
            torch.backends.cudnn.benchmark_limit = 0  # all kernels it has, not the first ten
        else:
            tune_cpu()
        named = {name: p for name, p in self.loss.named_parameters() if p.requires_grad}
        self.maps = [name for name in named if name.endswith("linear_map.weight")]
        rest = [name for name in named if name not in self.maps]
        self.parameters = [named[name] for name in (*self.maps, *rest)]
        self.flat = _flatten(self.parameters)
        self.mean, self.square = torch.zeros_like(self.flat), torch.zeros_like(self.flat)
        self.taken, self.rate = self.flat.new_zeros(2)
        self.one = torch.ones_like(self.taken)
        self._loss: Callable[..., Tensor] = self.loss
        if compiled:
            # Inductor would take our (b, h, w, c) for (b, c, h, w) and transpose it.
            self._loss = torch.compile(self.loss, options={"layout_optimization": False})
        self.beside: Beside | None = None

    def __call__(self, x: Tensor, rate: float, *labels: Tensor) -> Tensor:
        """Train on ``x``, (b, c, h, w), at that learning rate; the loss before the update.

        Models that need labels get them last.
        """
        self.rate.fill_(rate)
        return self.update(x, *labels)

    def update(self, x: Tensor, *labels: Tensor) -> Tensor:
        """The step itself, one operation after the other, at the rate set before."""
        run_beside(self.beside, self.taken.add_, self.one)
        loss, gradient = self._gradient(x, *labels)
        adam_(
            self.flat,
            gradient,
            self.mean,
            self.square,
            self.taken,
            self.rate,
            clip=self.grad_clip,
            decay=self.weight_decay,
        )
        return loss.detach()

    def state_dict(self) -> dict[str, object]:
        """All that the next step depends on, but for the data."""
        return {"model": self.model.state_dict(), "optimiser": self._optimiser_state()}

    def load_state_dict(self, state: dict[str, dict[str, Tensor]]) -> None:
        self.model.load_state_dict(state["model"])
        for name, own in self._optimiser_state().items():
            own.copy_(state["optimiser"][name])

    def snapshot(self) -> Callable[[], None]:
        """Remember the state; the result puts it back into the tensors it lives in."""
        own = [*self.model.state_dict().values(), *self._optimiser_state().values()]
        copies = [value.clone() for value in own]

        def undo() -> None:
            for value, copied in zip(own, copies, strict=True):
                value.copy_(copied)

        return undo

    def is_finite(self) -> bool:
        """Whether all weights are numbers."""
        return bool(self.flat.isfinite().all())

    def _optimiser_state(self) -> dict[str, Tensor]:
        return {"mean": self.mean, "square": self.square, "taken": self.taken}

    def _gradient(self, *batch: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, and its gradient laid flat."""
        rounded = self._rounded_maps()
        with self.beside() if self.beside is not None else nullcontext():
            if rounded:
                loss = functional_call(self.loss, dict(zip(self.maps, rounded, strict=True)), batch)
            else:
                loss = self._loss(*batch)
        leaves = [*rounded, *self.parameters[len(rounded) :]]
        # Not backward(), which would add each gradient to what was there. The last layer's bias
        # may have none: if it does not count in magnitudes, no pixel depends on it.
        gradients = torch.autograd.grad(loss, leaves, materialize_grads=True)
        if self.beside is not None:
            self.beside.join()
        parts = [_lay_flat(gradient) for gradient in gradients]
        if rounded:
            parts = [torch.cat(parts[: len(rounded)]).float(), *parts[len(rounded) :]]
        return loss, torch.cat(parts)

    def _rounded_maps(self) -> list[Tensor]:
        """Weights of all linear maps, rounded in one go; empty where each layer does its own."""
        if self.device.type != "cuda" or self.dtype == torch.float32 or self.compiled:
            return []
        maps = self.parameters[: len(self.maps)]
        flat = self.flat[: sum(p.numel() for p in maps)].to(self.dtype)
        return [part.requires_grad_() for part in _views(flat, maps)]


class _Loss(nn.Module):
    """The model's loss as a module, for ``functional_call`` and ``compile``."""

    def __init__(self, model: AutoEncoder, dtype: torch.dtype) -> None:
        super().__init__()
        self.model, self.dtype = model, dtype

    def forward(self, x: Tensor, labels: Tensor | None = None) -> Tensor:
        return self.model.loss(x, self.dtype, labels=labels)


def _flatten(parameters: list[nn.Parameter]) -> Tensor:
    """One tensor with all weights in it, which become views of it."""
    flat = torch.cat([_lay_flat(p.detach()) for p in parameters])
    for p, part in zip(parameters, _views(flat, parameters), strict=True):
        p.data = part
    return flat


def _views(flat: Tensor, like: list[nn.Parameter]) -> list[Tensor]:
    """Parts of ``flat`` in the shapes of ``like``, convolutions channels last."""
    views = []
    for part, p in zip(flat.split([p.numel() for p in like]), like, strict=True):
        if p.ndim == 4:
            o, i, h, w = p.shape
            views.append(part.view(o, h, w, i).permute(0, 3, 1, 2))
        else:
            views.append(part.view_as(p))
    return views


def _lay_flat(p: Tensor) -> Tensor:
    return (p.permute(0, 2, 3, 1) if p.ndim == 4 else p).reshape(-1)
