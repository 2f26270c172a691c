"""Messages are extracted with the files that have them, and without a date."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.suite import messages

pytestmark = pytest.mark.long


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text("label = _('Closed on %(day)s.')\nnone = 'x'\n")
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "shop.html").write_text("{% translate 'Hours' %}\n")
    return tmp_path


def test_a_package(package: Path) -> None:
    text = messages.extract(package)
    assert '#: shop.py\n#, python-format\nmsgid "Closed on %(day)s."\n' in text
    assert '#: templates/shop.html\nmsgid "Hours"\n' in text
    assert text.count("msgid") == 3
    assert "Date" not in text
    assert list(package.glob("locale")) == []


def test_a_message_that_changed(
    package: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(messages, "PACKAGE", package)
    monkeypatch.setattr(messages, "ROOT", package.parent)
    monkeypatch.setattr(sys, "argv", ["messages", "--write"])
    assert messages.main() == 0
    monkeypatch.setattr(sys, "argv", ["messages"])
    assert messages.main() == 0
    (package / "shop.py").write_text("label = _('Closed.')\n")
    assert messages.main() == 1
    said = capsys.readouterr().out
    assert said.endswith("django.po is out of date. Run `make messages`.\n")
