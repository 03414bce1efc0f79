"""A value of a column as messages show it."""

import pyarrow as pa

_MOST = 80


def shown(value: pa.Scalar) -> str:
    """Show a value in a message: at most 80 characters; "no value" for null.

    A time of a year or a zone that Python does not know is shown as the number that was stored,
    text that is not UTF-8 by its bytes.
    """
    is_time = pa.types.is_temporal(value.type)
    try:
        plain = value.as_py()
    except (ValueError, OverflowError):
        plain = f"{value.value} of type {value.type}" if is_time else value.as_buffer().to_pybytes()
    if plain is None:
        return "no value"
    text = repr(str(plain) if is_time else plain)
    return text if len(text) <= _MOST else text[: _MOST - 3] + "..."
