"""CSV files as Arrow tables of text, and errors that name the row that cannot be read."""

import codecs
import csv
import io
import os
from pathlib import Path
from typing import Any

from selectenv.checks import check_name, shown
from selectenv.datasets.arrow_columns import DECIMAL, require
from selectenv.errors import DatasetFileError, LogError, OptionError

DELIMITERS = (",", ";", "\t", "|")
"""Characters that commonly separate the fields of a row."""
HEAD = 1 << 20
"""Bytes at the beginning of a file that hold its header."""
CHUNK = 1 << 22
ENCODING_ADVICE = (
    "name its encoding, such as encoding='cp1252' for files of older Windows programs, or 'utf-16' (on the command "
    "line, --encoding cp1252)"
)


def row_of_file(row: int) -> str:
    """Return how error messages name a row: as in a data frame, and as in a spreadsheet."""
    return f"row {row} ({row + 2} in a spreadsheet)"


class CsvFile:
    """A CSV file with a header."""

    def __init__(self, path: Path, delimiter: Any, encoding: Any = "utf-8", decimal: Any = ".") -> None:
        r"""Read the header.

        Args:
            path: the file.
            delimiter: the character between two fields; a backslash followed by t, as shells pass it on, is a tab.
            encoding: the encoding of the text.
            decimal: the decimal sign of numbers, a point or a comma.

        Raises:
            OptionError: the delimiter is not one character, or not the one that the file uses; there is no such
                encoding; or the decimal sign is the delimiter.
            DatasetFileError: the file has no header, or is not text in this encoding.
        """
        delimiter = "\t" if isinstance(delimiter, str) and delimiter == r"\t" else delimiter
        if not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
            raise OptionError(f"delimiter must be one character, such as ',' or ';', not {shown(delimiter)}")
        if check_name("value of `decimal`", decimal, (".", ",")) == delimiter:
            raise OptionError(f"the decimal sign and the delimiter cannot both be {decimal!r}")
        try:
            self._encoding = codecs.lookup(encoding).name
        except (LookupError, TypeError, ValueError):
            raise OptionError(f"encoding must be the name of one, such as 'cp1252', not {shown(encoding)}") from None
        self._path, self._delimiter, self._decimal = path, delimiter, decimal
        self._arrow, self._csv = require("pyarrow"), require("pyarrow.csv")
        self.names = self._header()
        other = [character for character in DELIMITERS if character in self.names[0]]
        if len(self.names) == 1 and other:
            raise OptionError(f"the file has the single column {shown(self.names[0])}: try the delimiter {other[0]!r}")

    def _header(self) -> list[str]:
        """Return the names of the columns."""
        try:
            with self._arrow.input_stream(os.fspath(self._path)) as stream:
                head: bytes = stream.read(HEAD)
            utf8 = self._encoding == "utf-8"
            if utf8 and (b"\0" in head or head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))):
                raise self._unreadable(f"it is not text in UTF-8; if it is text at all, {ENCODING_ADVICE}")
            text = head.decode("utf-8-sig" if utf8 else self._encoding, errors="replace")
            lines = csv.reader(io.StringIO(text, newline=""), delimiter=self._delimiter)
            names = next((line for line in lines if line), None)
        except (self._arrow.ArrowException, OSError, UnicodeError, csv.Error) as error:
            raise error if isinstance(error, DatasetFileError) else self._unreadable(str(error)) from None
        if names is None:
            raise self._unreadable("it is empty")
        return names

    def read(self, discrete: list[str], numeric: list[str]) -> Any:
        """Return an Arrow table of these columns, all of them text; empty fields are missing.

        Raises:
            LogError: a row has too many or too few fields, or text in another encoding.
            DatasetFileError: the file cannot be read for another reason.
        """
        arrow = self._arrow
        text, categories = arrow.string(), arrow.dictionary(arrow.int32(), arrow.string())
        kinds = dict.fromkeys(discrete, categories) | dict.fromkeys(numeric, text)
        try:
            table = self._table(kinds)
        except UnicodeError:
            raise self._unreadable(f"it is not text in {self._encoding}; {ENCODING_ADVICE}") from None
        except (arrow.ArrowException, OSError) as error:
            self._find_fault(kinds)
            raise self._unreadable(str(error)) from None
        return table if self._decimal == "." else self._with_points(table)

    def _with_points(self, table: Any) -> Any:
        """Return a table with decimal points in place of commas, in columns that then hold nothing but numbers."""
        compute = require("pyarrow.compute")
        for i, name in enumerate(table.column_names):
            column = table.column(name)
            values = compute.unique(column).cast(self._arrow.string()).drop_null()
            replaced = [value.replace(",", ".") for value in values.to_pylist()]
            if all(map(DECIMAL.fullmatch, replaced)):
                plain = compute.replace_substring(column.cast(self._arrow.string()), ",", ".")
                table = table.set_column(i, name, plain)
        return table

    def _table(self, kinds: dict[str, Any], **parsing: Any) -> Any:
        """Return the columns with their types."""
        conversion = self._csv.ConvertOptions(
            include_columns=list(kinds),
            column_types=kinds,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        reading = self._csv.ReadOptions(use_threads=not parsing, encoding=self._encoding)
        return self._csv.read_csv(self._path, reading, self._parsing(**parsing), conversion)

    def _parsing(self, **more: Any) -> Any:
        return self._csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True, **more)

    def _find_fault(self, kinds: dict[str, Any]) -> None:
        """Read an unreadable file a second time, in one thread, to find the row that is wrong.

        Raises:
            LogError: the row is found.
            DatasetFileError: the text has another encoding.
        """
        wrong: list[Any] = []

        def skip(row: Any) -> str:
            wrong.append(row)
            return "skip"

        is_text = self._is_text()
        handler = {"invalid_row_handler": skip} if is_text else {}  # Arrow cannot hand over rows that are not text
        try:
            table = self._table(dict.fromkeys(kinds, self._arrow.binary()), **handler)
        except (self._arrow.ArrowException, OSError):
            if is_text:
                return
            raise self._unreadable(f"it is not text in UTF-8; {ENCODING_ADVICE}") from None
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
                        f"{row_of_file(row)}, column {name!r}: {shown(entry)} is not text in UTF-8; {ENCODING_ADVICE}"
                    ) from None

    def _is_text(self) -> bool:
        """Return whether the whole file is text in its encoding."""
        decoder = codecs.getincrementaldecoder(self._encoding)()
        try:
            with self._arrow.input_stream(os.fspath(self._path)) as stream:
                while chunk := stream.read(CHUNK):
                    decoder.decode(chunk)
                decoder.decode(b"", final=True)
        except UnicodeError:
            return False
        except (self._arrow.ArrowException, OSError):
            pass  # the file is damaged in another way
        return True

    def _unreadable(self, reason: str) -> DatasetFileError:
        return DatasetFileError(f"{os.fspath(self._path)!r} is not a CSV file that can be read: {reason[:300]}")
