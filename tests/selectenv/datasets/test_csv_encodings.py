"""CSV files in other encodings, with decimal commas, with tabs, and files that are no text at all."""

import pytest

import selectenv
from selectenv.errors import DatasetFileError, LogError, OptionError, UnknownNameError

ROLES = {"state": "s", "action": "a", "episode": "e"}
TEXT = "e;s;a;x\n1;Küche;go;0,5\n1;Flur;go;1,25\n"


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8", "latin1"])
def test_encodings(tmp_path, encoding):
    path = tmp_path / "log.csv"
    path.write_bytes(TEXT.encode(encoding))
    data = selectenv.from_csv(path, **ROLES, delimiter=";", encoding=encoding)
    assert data.ids.tolist() == ["Flur", "Küche"]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
@pytest.mark.parametrize("ragged", ["", "1;x\n"])
@pytest.mark.filterwarnings("error")
def test_other_encodings_are_named_without_further_noise(tmp_path, capfd, encoding, ragged):
    path = tmp_path / "log.csv"
    path.write_bytes((TEXT + ragged).encode(encoding))
    with pytest.raises((LogError, DatasetFileError), match=r"not text in UTF-8.*--encoding cp1252"):
        selectenv.from_csv(path, **ROLES, delimiter=";")
    with pytest.raises(OptionError, match="encoding must be the name of one"):
        selectenv.from_csv(path, **ROLES, encoding="klingon")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("content", [bytes(range(256)) * 40, b"\x89PNG\r\n\x1a\n" + b"\xff,\xfe\n" * 99, b"\0" * 99])
def test_binary_files_are_refused_without_further_noise(tmp_path, capfd, content):
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    with pytest.raises((DatasetFileError, UnknownNameError)):
        selectenv.from_csv(path, **ROLES)
    assert capfd.readouterr().err == ""


def test_a_wrong_encoding_is_named(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(TEXT.encode("cp1252"))
    with pytest.raises(DatasetFileError, match="not text in ascii"):
        selectenv.from_csv(path, **ROLES, delimiter=";", encoding="ascii")


def test_decimal_commas(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(TEXT, encoding="utf-8")
    roles = {**ROLES, "state": "x", "delimiter": ";"}
    with pytest.raises(LogError, match=r"'0,5' is not a number.*decimal=',' \(on the command line, --decimal ,\)"):
        selectenv.from_csv(path, **roles, bins={"x": [1.0]})
    data = selectenv.from_csv(path, **roles, bins={"x": [1.0]}, decimal=",")
    assert data.ids.tolist() == ["1 or more", "below 1"]
    with pytest.raises(LogError, match=r"0\.5 is not a whole number"):
        selectenv.from_csv(path, **roles, decimal=",")
    vectors = selectenv.from_csv(path, **roles, vectors=True, decimal=",")
    assert vectors.vectors.values.tolist() == [[0.5], [1.25]]
    for wrong in (";", ""):
        with pytest.raises(OptionError, match="decimal"):
            selectenv.from_csv(path, **roles, decimal=wrong)
    with pytest.raises(OptionError, match="cannot both be ','"):
        selectenv.from_csv(path, **ROLES, decimal=",")


def test_a_tab_as_shells_pass_it_on(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("e\ts\ta\n1\tx\tgo\n")
    assert len(selectenv.from_csv(path, **ROLES, delimiter="\\t")) == 1


def test_advice_in_errors(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("e,s,a,t\n1,x,0.5,1\n1,y,1,1\n")
    with pytest.raises(LogError, match="if they are columns of the state, make vectors"):
        selectenv.from_csv(path, **ROLES)
    with pytest.raises(LogError, match="leave out time to take the rows in their order"):
        selectenv.from_csv(path, **ROLES | {"action": "s"}, time="t")
    for wrong in (2.5, 0.5, -1):
        with pytest.raises(OptionError, match=r"bins.*must be a"):
            selectenv.from_csv(path, **ROLES, bins={"a": wrong})
