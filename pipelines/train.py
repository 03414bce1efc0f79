"""Train two towers; index, evaluate and bundle them; leave `<run_dir>/bundle` and a report.

recsys train dataset=ml-100k experiment=history
"""

import logging
from pathlib import Path

from omegaconf import DictConfig

from recsys.bundle import check_replaceable, write_bundle
from recsys.cli import experiment_name, job_folder, stage, sweep_name, user_folder
from recsys.config import TrainConfig, build, flatten, load, register_schemas, to_plain
from recsys.config.build_dataset import find_or_prepare
from recsys.config.build_evaluation import evaluate_model
from recsys.config.build_index import build_index, queries_of_validation
from recsys.config.build_refit import fit_again
from recsys.config.build_warm_start import build_start
from recsys.data import read_prepared
from recsys.foundations import seed_everything
from recsys.models import encode_candidates
from recsys.training import RunFolder, fit, log_outcome, scores_of

log = logging.getLogger(__name__)
register_schemas()


def train(
    cfg: TrainConfig, run_dir: Path, *, sweep: str | None = None, experiment: str | None = None
) -> Path:
    """Run the stage, give the bundle's folder; `experiment` is noted. Tests need no Hydra."""
    build.apply_threads(cfg)
    seed_everything(cfg.seed)
    check_replaceable(run_dir / "bundle")
    products = build.build_products(cfg)
    folder = RunFolder(run_dir, resume=cfg.resume)
    start = build_start(cfg, run_dir)
    with build.build_tracker(
        cfg.tracking, run_dir, sweep, folder.tracked_run, experiment=experiment
    ) as tracker:
        tracker.log_settings({"experiment": experiment} | flatten(cfg), to_plain(cfg))
        dataset = read_prepared(find_or_prepare(cfg))
        folder.begin(tracker.run_id, flatten(cfg))
        tracker.log_dataset(cfg.dataset.name, dataset.fingerprint, str(dataset.path))
        log.info("%s", dataset.summary)

        run = build.build_run(cfg, dataset, tracker, run_dir)
        start.begin(run, dataset)
        with products:
            result = fit(run, resume=cfg.resume)
        model, chosen = run.step.model, run.step.model.spec
        if cfg.trainer.refit:
            del run, model  # two models need not be there at once
            model, dataset = fit_again(
                cfg, dataset, chosen=chosen, result=result, tracker=tracker, run_dir=run_dir
            )
        vectors = encode_candidates(model, dataset.items.features, dataset.num_items)
        ask = queries_of_validation(model, dataset, seed=cfg.seed)
        built = build_index(cfg.index, vectors, ask, run_dir, seed=cfg.seed)
        report = evaluate_model(cfg, dataset, model, built.index)
        report = start.compare(model, dataset, report)
        bundle = write_bundle(
            run_dir / "bundle",
            model=model,
            dataset=dataset,
            item_vectors=vectors,
            index=built.index,
            config=to_plain(cfg),
            scores=scores_of(result, report),
            provenance=start.provenance
            | built.provenance
            | {"dataset_dir": str(dataset.path), "tracked_run": tracker.run_id},
        )
        for file in built.files:
            tracker.log_artifact(file, "report")
        log_outcome(tracker, run_dir, result, report, build.bundle_to_send(cfg.tracking, bundle))
    log.info("bundle: %s\ntracked run: %s", bundle, tracker.url or "none (tracking=none)")
    return bundle


@stage("train")
def main(tree: DictConfig) -> None:
    """Compose the settings, check them, run the stage."""
    cfg = load(tree, TrainConfig, folder=user_folder())
    train(cfg, job_folder(), sweep=sweep_name(), experiment=experiment_name())


if __name__ == "__main__":
    main()
