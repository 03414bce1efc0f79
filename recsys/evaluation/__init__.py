"""From a model and an index, or from ranked lists, to a report."""

from recsys.evaluation.candidates import RankedCandidates, choose_candidates
from recsys.evaluation.compare import compare_reports
from recsys.evaluation.compare_rankers import compare_rankers
from recsys.evaluation.comparison import Comparison
from recsys.evaluation.comparison_table import comparison_table, print_comparison
from recsys.evaluation.dial_judge import DialPoint
from recsys.evaluation.embed import embed_queries
from recsys.evaluation.estimates import Estimate, Resampling
from recsys.evaluation.evaluate import Embed, evaluate_retrieval, quick_metrics
from recsys.evaluation.figures import new_figure, new_panels
from recsys.evaluation.known_to_model import known_to_model
from recsys.evaluation.likelihood import CatalogueSoftmax, LikelihoodJudge
from recsys.evaluation.measures import ListJudge, measure_lists
from recsys.evaluation.own_items import Bonus, bonus_of, own_items
from recsys.evaluation.plots import write_plots
from recsys.evaluation.popularity import PopularityList
from recsys.evaluation.queries import EvaluationQueries, build_queries
from recsys.evaluation.ranked import evaluate_ranked, read_ranked, read_truth
from recsys.evaluation.rankers import (
    FilledRank,
    PopularityRanker,
    Rank,
    Ranker,
    mean_recall,
    rank_by_vectors,
)
from recsys.evaluation.report import Report
from recsys.evaluation.results import print_report, write_results
from recsys.evaluation.slices import Slice, popularity_deciles
from recsys.evaluation.table import report_table, report_text
from recsys.evaluation.tuning_results import print_tuning, write_tuning
from recsys.evaluation.warm_start_report import (
    WarmStartReport,
    compare_before_after,
    mean_values,
)

__all__ = [
    "Bonus",
    "CatalogueSoftmax",
    "Comparison",
    "DialPoint",
    "Embed",
    "Estimate",
    "EvaluationQueries",
    "FilledRank",
    "LikelihoodJudge",
    "ListJudge",
    "PopularityList",
    "PopularityRanker",
    "Rank",
    "RankedCandidates",
    "Ranker",
    "Report",
    "Resampling",
    "Slice",
    "WarmStartReport",
    "bonus_of",
    "build_queries",
    "choose_candidates",
    "compare_before_after",
    "compare_rankers",
    "compare_reports",
    "comparison_table",
    "embed_queries",
    "evaluate_ranked",
    "evaluate_retrieval",
    "known_to_model",
    "mean_recall",
    "mean_values",
    "measure_lists",
    "new_figure",
    "new_panels",
    "own_items",
    "popularity_deciles",
    "print_comparison",
    "print_report",
    "print_tuning",
    "quick_metrics",
    "rank_by_vectors",
    "read_ranked",
    "read_truth",
    "report_table",
    "report_text",
    "write_plots",
    "write_results",
    "write_tuning",
]
