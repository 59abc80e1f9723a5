"""One process of a benchmark: it prints a line of JSON, a timing for each task.

    TASK='{"bench": "ward", "variant": "ours", "images": 4, "repeats": 2}'
    python -m rotating_features.bench.one "[$TASK]"

Without an argument it says when all is imported and waits for the tasks as a line of input.
"""

import json
import sys

import torch

from rotating_features.bench import evaluation, kernels, segmentation, step
from rotating_features.bench.alone import Task
from rotating_features.bench.harness import Timing

TIMERS = {
    "step": step.time_step,
    "evaluate": evaluation.time_evaluate,
    "smooth": evaluation.time_smooth,
    "ward": evaluation.time_ward,
    "photographs": evaluation.time_photographs,
    "segment": segmentation.time_segment,
    "kernels": kernels.time_kernel,
}


def time_task(task: Task) -> Timing | None:
    """The task's timing, or None if the GPU has too little memory for it."""
    settings = dict(task)
    timer = TIMERS[settings.pop("bench")]
    try:
        return timer(settings.pop("variant"), **settings)
    except torch.OutOfMemoryError:
        return None


def main() -> None:
    if len(sys.argv) > 1:
        text = sys.argv[1]
    else:
        print("ready", flush=True)
        text = sys.stdin.readline()
    print(json.dumps([time_task(task) for task in json.loads(text)]), flush=True)


if __name__ == "__main__":
    main()
