"""How a run ends: which status fits."""


def status_of(error: BaseException | None) -> str:
    """Give MLflow's word for the way a block was left."""
    code = error.code if isinstance(error, SystemExit) else None
    if error is None or (isinstance(error, SystemExit) and code in (None, 0)):
        return "FINISHED"
    by_signal = isinstance(code, int) and code > 128
    return "KILLED" if by_signal or isinstance(error, KeyboardInterrupt) else "FAILED"
