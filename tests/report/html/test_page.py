"""The page as a file: what it holds, what it cannot do, and what it refuses."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from graphnet import cli
from graphnet.errors import StoreError, UsageError
from graphnet.evaluate.records import Environment, Result
from graphnet.evaluate.store import Store
from graphnet.report.html import command, page
from graphnet.report.html.strings import LANGUAGES, texts
from tests.report.html.samples import HOSTILE

TEMPLATES = Path(page.__file__).parent / "templates"


class Elements(HTMLParser):
    """Start tags with their attributes, and the text of scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts[-1] += data


@pytest.fixture
def html(results: list[Result], environment: Environment) -> str:
    return page.build(results, [environment])


def test_asks_the_network_for_nothing(html: str) -> None:
    found = Elements(html)
    addresses = [value for _, attributes in found.tags for name, value in attributes.items() if name in ("src", "href")]
    assert {address for address in addresses if address and not address.startswith("#")} == {"data:,"}
    policy = next(str(a["content"]) for tag, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy


def test_only_its_own_two_scripts_may_run(html: str) -> None:
    found = Elements(html)
    kinds = [attributes.get("type") for tag, attributes in found.tags if tag == "script"]
    assert kinds == ["application/json"] * 4 + [None, None]
    policy = next(str(a["content"]) for _, a in found.tags if a.get("http-equiv"))
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in found.scripts[4:]]
    assert re.findall(r"'sha256-([^']+)'", policy) == digests


def test_hostile_names_stay_in_the_data(html: str) -> None:
    assert HOSTILE not in html
    assert "onerror=window.hacked" not in re.sub(r"<script type=.*?</script>", "", html, flags=re.DOTALL)
    overview = json.loads(Elements(html).scripts[1])
    assert overview["groups"][0]["columns"][1] == "jax"
    assert overview["groups"][0]["columns"][2].startswith("</script><script>")


def test_every_text_is_there_in_both_languages() -> None:
    english, chinese = texts("en"), texts("zh")
    assert english.keys() == chinese.keys()
    for name, text in english.items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", chinese[name])), name
    scripts = "".join(file.read_text() for file in TEMPLATES.glob("*.js"))
    used = set(re.findall(r'say\("(\w+)"[,)]', scripts))
    used |= set(re.findall(r'data-(?:text|label)="(\w+)"', (TEMPLATES / "page.html").read_text()))
    assert len(used) > 60
    assert used <= english.keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_opens_in_the_language_asked_for(results: list[Result], language: str) -> None:
    html = page.build(results, language=language)
    assert f'data-language="{language}"' in html
    assert f"<title>{texts(language)['title']} · GraphNet</title>" in html


def test_command_writes_the_page_beside_the_results(
    results: list[Result],
    environment: Environment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Store(tmp_path) as store:
        store.add_all(results, [environment])
    arguments = ["graphnet", "report", str(tmp_path), "--lang", "zh", "--graph", "benchmark/matmul/square_512.json"]
    monkeypatch.setattr("sys.argv", arguments)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code
    assert capsys.readouterr().out.strip() == str(tmp_path / "report.html")
    written = (tmp_path / "report.html").read_text()
    assert "EPYC" in written
    assert 'data-language="zh"' in written


def test_what_cannot_be_reported_is_refused(results: list[Result], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no results of the baseline 'tvm'; choose one with --baseline, there are"):
        page.build(results, baseline="tvm")
    with pytest.raises(UsageError, match="no language 'fr'; it has: en, zh"):
        page.build(results, language="fr")
    with pytest.raises(UsageError, match="no results to report"):
        page.build([])
    with pytest.raises(StoreError, match="give another place with -o"):
        page.write("", tmp_path / "absent" / "report.html")
    with pytest.raises(StoreError, match="no results at"):
        command.report(str(tmp_path), baseline="torch")
