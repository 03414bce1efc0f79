"""The sentence: the cheapest estimator below the target, the full softmax, or none."""

from recsys.diagnosis import GradientError, Measurement, StepError, advise
from recsys.evaluation import Estimate


def make_measurement(name: str, size: int, *, error: float, seconds: float) -> Measurement:
    one = Estimate(error)
    step = StepError(one, one, one, one, draw_seconds=0.0, seconds=seconds)
    gradients = {"scores": GradientError(one, one, 0.0)}
    return Measurement(name, size, size, gradients, None, None, 0.0, None, {}, step)


FULL = make_measurement("full_softmax", 1000, error=0.0, seconds=0.05)
CLOSE = make_measurement("standard_uniform", 256, error=0.09, seconds=0.01)
CLOSER = make_measurement("standard_uniform", 512, error=0.05, seconds=0.02)
FAR = make_measurement("in_batch", 64, error=0.3, seconds=0.001)


def test_names_the_cheapest_below_the_target_and_the_time_to_beat() -> None:
    advice = advise([FULL, CLOSER, CLOSE, FAR], target=0.1, batch_size=64)
    assert advice.sentence == (
        "At a batch of 64 rows the cheapest estimator with an error below 0.1 is standard, uniform "
        "with a sample size of 256 (error 0.090, 10.0 ms a step); the full softmax takes 50.0 ms."
    )
    assert (advice.estimator, advice.sample_size) == ("standard_uniform", 256)


def test_says_that_the_full_softmax_is_the_cheapest_where_it_is() -> None:
    advice = advise([FULL, FAR], target=0.1, batch_size=64)
    assert advice.sentence == (
        "At a batch of 64 rows the full softmax itself is the cheapest with an error below 0.1: "
        "50.0 ms a step."
    )


def test_says_that_none_is_below_the_target_and_which_is_closest() -> None:
    advice = advise([CLOSE, FAR], target=0.01, batch_size=2048)
    assert advice.sentence == (
        "At a batch of 2,048 rows no estimator that was measured has an error below 0.01: the "
        "closest is standard, uniform with a sample size of 256 (error 0.090, 10.0 ms a step)."
    )
    assert advice.estimator is None
    assert advice.sample_size is None


def test_what_does_not_aim_at_the_softmax_is_not_advised() -> None:
    bpr = make_measurement("bpr", 16, error=0.05, seconds=0.001)
    plain = make_measurement("uncorrected_popularity", 16, error=0.05, seconds=0.001)
    model = make_measurement("monte_carlo", 16, error=0.05, seconds=0.001)  # as dear as FULL
    assert advise([FULL, bpr, plain, model], target=0.1, batch_size=64).estimator == "full_softmax"
    assert advise([bpr, plain], target=0.1, batch_size=64).sentence == (
        "At a batch of 64 rows nothing that aims at the softmax was measured."
    )
