"""One training step: forward, backward, clipping, Adam."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rotating_features.models import RotatingAutoEncoder
from rotating_features.train.machine import Precision, tune_cpu


class Step:
    """The training step, as fast as the device can take it.

    Compiled where asked to; on a GPU all of it is one CUDA graph, so that a step costs one launch.

    Args:
        model: On its device already. It is trained in place.
        grad_clip: Largest norm of all gradients together, or None.
        weight_decay: L2 penalty inside Adam.
        precision: Of the convolutions; weights, norms and the loss stay in float32.
        compiled: Whether to run through ``torch.compile``.
    """

    def __init__(
        self,
        model: RotatingAutoEncoder,
        *,
        grad_clip: float | None = 0.1,
        weight_decay: float = 0.0,
        precision: Precision = "float32",
        compiled: bool = False,
    ) -> None:
        self.model = model.train()
        self.model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        self.parameters = list(model.parameters())
        self.device = self.parameters[0].device
        self.grad_clip = grad_clip
        self.precision: Precision = precision
        if self.device.type == "cpu":
            tune_cpu()
        else:
            torch.set_float32_matmul_precision("high")  # TF32
            torch.backends.cudnn.allow_tf32 = True
            torch.backends.cudnn.benchmark = True
        on_gpu = self.device.type == "cuda"
        self.optimiser = torch.optim.Adam(
            self.parameters,
            lr=torch.tensor(0.0, device=self.device) if on_gpu else 0.0,  # every call sets it
            weight_decay=weight_decay,
            fused=True,
            capturable=on_gpu,
        )
        # Inductor would take our (b, h, w, c) for (b, c, h, w) and transpose it.
        self._loss: Callable[[Tensor], Tensor] = self._eager_loss
        if compiled:
            self._loss = torch.compile(self._eager_loss, options={"layout_optimization": False})
        self._graph: _Graph | None = None

    def __call__(self, x: Tensor, rate: float) -> Tensor:
        """Train on ``x``, (b, c, h, w), at that learning rate; the loss before the update."""
        for group in self.optimiser.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        if self.device.type != "cuda":
            return self.update(x)
        with torch.cuda.device(self.device):
            if self._graph is None:
                self._graph = _Graph(self, x)
            return self._graph(x)

    def state_dict(self) -> dict[str, object]:
        """All that the next step depends on, but for the data."""
        return {"model": self.model.state_dict(), "optimiser": self.optimiser.state_dict()}

    def load_state_dict(self, state: dict[str, dict[str, object]]) -> None:
        self.model.load_state_dict(state["model"])
        own = self.optimiser.state_dict()["param_groups"]  # of this device, not of the saved one
        self.optimiser.load_state_dict(
            copy.deepcopy({"state": state["optimiser"]["state"], "param_groups": own})
        )

    def is_finite(self) -> bool:
        """Whether all weights are numbers."""
        return all(bool(p.isfinite().all()) for p in self.parameters)

    def _eager_loss(self, x: Tensor) -> Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bfloat16"):
            reconstruction = self.model.autoencode(x).reconstruction
        return F.mse_loss(reconstruction.float(), x)

    def update(self, x: Tensor) -> Tensor:
        """The step itself, one operation after the other, at the rate set before."""
        self.optimiser.zero_grad(set_to_none=True)
        loss = self._loss(x)
        loss.backward()
        if self.grad_clip is not None:
            nn.utils.clip_grad_norm_(self.parameters, self.grad_clip)
        self.optimiser.step()
        return loss.detach()


class _Graph:
    """A step recorded once and replayed: no Python, no launches in between."""

    def __init__(self, step: Step, x: Tensor) -> None:
        self.x = x.clone()
        undo = _snapshot(step)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):  # compiles, chooses kernels, makes the optimiser's buffers
                step.update(self.x)
            undo()
        torch.cuda.current_stream().wait_stream(side)
        step.optimiser.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.loss = step.update(self.x)

    def __call__(self, x: Tensor) -> Tensor:
        self.x.copy_(x, non_blocking=True)
        self.graph.replay()
        return self.loss.clone()


def _snapshot(step: Step) -> Callable[[], None]:
    """Remember model and optimiser; the result puts them back into the tensors they live in."""
    model = {name: value.clone() for name, value in step.model.state_dict().items()}
    adam = {
        p: {k: v.clone() for k, v in state.items()} for p, state in step.optimiser.state.items()
    }

    def undo() -> None:
        step.model.load_state_dict(model)
        for p, state in step.optimiser.state.items():
            for name, value in state.items():
                value.copy_(adam[p][name]) if p in adam else value.zero_()

    return undo
