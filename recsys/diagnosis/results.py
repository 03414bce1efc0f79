"""A diagnosis as files: the numbers and the pictures."""

from pathlib import Path

from recsys.diagnosis.canvas import write_figure
from recsys.diagnosis.plot_bias import plot_bias
from recsys.diagnosis.plot_cosine import plot_cosine
from recsys.diagnosis.plot_popularity import plot_popularity
from recsys.diagnosis.result import Diagnosis


def write_diagnosis(diagnosis: Diagnosis, run_dir: Path) -> list[Path]:
    """Write `diagnosis.json` and the pictures, in its folder `plots`; give their paths."""
    return [
        diagnosis.write(run_dir / "diagnosis.json"),
        *write_diagnosis_plots(diagnosis, run_dir / "plots"),
    ]


def write_diagnosis_plots(diagnosis: Diagnosis, folder: Path) -> list[Path]:
    """Write `bias.png`, `cosine.png` and `popularity.png`, each atomically; give their paths.

    Args:
        diagnosis: The result.
        folder: Where the files go; made if it is not there.
    """
    figures = {
        "bias.png": plot_bias(diagnosis),
        "cosine.png": plot_cosine(diagnosis),
        "popularity.png": plot_popularity(diagnosis),
    }
    return [write_figure(figure, folder / name) for name, figure in figures.items()]
