"""Every error that is raised on purpose.

RecsysError
├── ConfigError        a setting, or two settings that exclude each other       (ValueError)
├── DataError          a file, column or row of the user's data                 (ValueError)
├── FormatError        a saved file of ours: unknown version, damaged, mixed up  (ValueError)
├── ShapeError         a tensor whose shape disagrees with another's             (ValueError)
├── ArgumentError      an argument of a public function                         (ValueError)
├── MissingFileError   a path that leads nowhere                                (FileNotFoundError)
├── UnknownIdError     an id that the vocabulary does not hold                  (LookupError)
├── MissingExtraError  a library that an extra installs                         (ImportError)
├── TrackingError      the tracking store refused or does not answer            (ConnectionError)
└── TrainingError      a loss or gradient that is not finite                     (ArithmeticError)

All of them are the user's to mend: the commands print one sentence and end with status 2.
"""


class RecsysError(Exception):
    """The root of every error raised on purpose."""


class ConfigError(RecsysError, ValueError):
    """A setting is missing, misspelt, out of range, or excludes another."""


class DataError(RecsysError, ValueError):
    """The user's data cannot be read as asked; the message names file, column and value."""


class FormatError(RecsysError, ValueError):
    """A saved artifact is damaged, of an unknown version, or mixed from two."""


class ShapeError(RecsysError, ValueError):
    """A tensor's shape disagrees with another's."""


class ArgumentError(RecsysError, ValueError):
    """An argument of a public function is out of range."""


class MissingFileError(RecsysError, FileNotFoundError):
    """A path leads nowhere."""


class UnknownIdError(RecsysError, LookupError):
    """An id is not in the vocabulary."""


class MissingExtraError(RecsysError, ImportError):
    """A library that comes with an extra is not installed."""


class TrackingError(RecsysError, ConnectionError):
    """The tracking store refused the run or does not answer."""


class TrainingError(RecsysError, ArithmeticError):
    """The loss or a gradient is not finite."""
