"""CSV files as Arrow tables of text, and errors that name the row that cannot be read."""

import os
from pathlib import Path
from typing import Any

from selectenv.checks import shown
from selectenv.datasets.arrow_columns import require
from selectenv.errors import DatasetFileError, LogError, OptionError

DELIMITERS = (",", ";", "\t", "|")
"""Characters that commonly separate the fields of a row."""


def row_of_file(row: int) -> str:
    """Return how error messages name a row: as in a data frame, and as in a spreadsheet."""
    return f"row {row} ({row + 2} in a spreadsheet)"


class CsvFile:
    """A CSV file with a header."""

    def __init__(self, path: Path, delimiter: Any) -> None:
        """Read the header.

        Raises:
            OptionError: the delimiter is not one character, or not the one that the file uses.
            DatasetFileError: the file has no header.
        """
        if not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
            raise OptionError(f"delimiter must be one character, such as ',' or ';', not {shown(delimiter)}")
        self._path = path
        self._arrow, self._csv = require("pyarrow"), require("pyarrow.csv")
        self._delimiter = delimiter
        try:
            parsing = self._parsing(invalid_row_handler=lambda row: "skip")
            with self._csv.open_csv(path, parse_options=parsing) as reader:
                self.names: list[str] = reader.schema.names
        except (self._arrow.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._unreadable(error) from None
        other = [character for character in DELIMITERS if character in self.names[0]]
        if len(self.names) == 1 and other:
            raise OptionError(f"the file has the single column {shown(self.names[0])}: try the delimiter {other[0]!r}")

    def read(self, discrete: list[str], numeric: list[str]) -> Any:
        """Return an Arrow table of these columns, all of them text; empty fields are missing.

        Raises:
            LogError: a row has too many or too few fields, or text that is not UTF-8.
            DatasetFileError: the file cannot be read for another reason.
        """
        arrow = self._arrow
        text, categories = arrow.string(), arrow.dictionary(arrow.int32(), arrow.string())
        kinds = dict.fromkeys(discrete, categories) | dict.fromkeys(numeric, text)
        try:
            return self._table(kinds)
        except (arrow.ArrowException, OSError) as error:
            self._find_fault(kinds)
            raise self._unreadable(error) from None

    def _table(self, kinds: dict[str, Any], **parsing: Any) -> Any:
        """Return the columns with their types."""
        conversion = self._csv.ConvertOptions(
            include_columns=list(kinds),
            column_types=kinds,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        reading = self._csv.ReadOptions(use_threads=not parsing)
        return self._csv.read_csv(self._path, reading, self._parsing(**parsing), conversion)

    def _parsing(self, **more: Any) -> Any:
        return self._csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True, **more)

    def _find_fault(self, kinds: dict[str, Any]) -> None:
        """Read an unreadable file a second time, in one thread, to find the row that is wrong.

        Raises:
            LogError: the row is found.
        """
        wrong: list[Any] = []

        def skip(row: Any) -> str:
            wrong.append(row)
            return "skip"

        try:
            table = self._table(dict.fromkeys(kinds, self._arrow.binary()), invalid_row_handler=skip)
        except (self._arrow.ArrowException, OSError):
            return
        if wrong:
            first = wrong[0]
            fields = f"{first.actual_columns} fields instead of {first.expected_columns}"
            raise LogError(f"{row_of_file(first.number - 2)} has {fields}: {shown(first.text)}")
        for name in kinds:
            for row, entry in enumerate(table.column(name).to_pylist()):
                try:
                    (entry or b"").decode()
                except UnicodeDecodeError:
                    raise LogError(
                        f"{row_of_file(row)}, column {name!r}: {shown(entry)} is not text in UTF-8"
                    ) from None

    def _unreadable(self, error: Exception) -> DatasetFileError:
        return DatasetFileError(f"{os.fspath(self._path)!r} is not a CSV file that can be read: {shown(str(error))}")
