"""Files: the right size, well formed whatever is written in them, in need of no network, in the right place."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from struct import unpack
from xml.etree import ElementTree

import pytest

from loadstone.errors import UsageError
from loadstone.plot import draw
from loadstone.plot._files import destination, formats

HOSTILE = "</script><script>alert(1)</script> & <b>\"'\x00\x1b]0;x\x07 \u202e{{x}}"


def test_a_png_has_two_pixels_for_each_px(constant):
    (path,) = draw([constant], names=["request-rate"])
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert unpack(">II", head[16:24]) == (1600, 800)


def test_figures_lie_beside_the_first_run(constant, capped):
    written = draw([constant, capped], kinds="svg")
    assert [path.relative_to(constant) for path in written] == [
        Path("plots/concurrency.svg"),
        Path("plots/latency-over-time.svg"),
        Path("plots/request-rate.svg"),
    ]
    assert all(path.stat().st_size > 5000 for path in written)
    assert not (capped / "plots").exists()


def test_a_figure_drawn_again_replaces_the_first(constant):
    first = draw([constant], names=["request-rate"], kinds="svg", title="one")[0].read_text()
    second = draw([constant], names=["request-rate"], kinds="svg", title="two")[0].read_text()
    assert ">one<" in first
    assert ">two<" in second
    assert [path.name for path in (constant / "plots").iterdir()] == ["request-rate.svg"]


def test_no_text_breaks_an_svg(constant, capped):
    (path,) = draw(
        [constant, capped], names=["request-rate"], kinds="svg", labels=[HOSTILE, "b"], title=HOSTILE
    )
    root = ElementTree.parse(path).getroot()
    texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any("</script><script>alert(1)" in text for text in texts)
    assert [element for element in root.iter() if element.tag.endswith(("}script", "}b"))] == []


class Page(HTMLParser):
    """The elements of a page and what they refer to."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href")]


def test_a_page_needs_no_network_and_no_text_breaks_it(constant):
    (path,) = draw([constant], names=["concurrency"], kinds="html", labels=[HOSTILE], title=HOSTILE)
    text = path.read_text()
    page = Page(text)
    assert page.tags.count("script") == 2
    assert page.links == []
    assert "b" not in page.tags
    assert "default-src 'none'" in text
    assert "window.vegaEmbed" in text
    assert len(text) > 500_000


def test_a_page_is_as_wide_as_its_window_and_leads_nowhere(constant):
    (path,) = draw([constant], names=["request-rate"], kinds="html")
    text = path.read_text()
    style = text[text.index("<style>") : text.index("</style>")]
    assert re.search(r"svg\.marks {[^}]*width: 100%; height: auto", style)
    *_, options = text.rpartition("vegaEmbed(")[2].rpartition(", {")
    assert '"export": true, "source": false, "compiled": false, "editor": false' in options


def test_what_was_offered_is_as_broad_and_pale_in_the_legend_as_in_the_figure(constant):
    (path,) = draw([constant], names=["offered-sent-queued"], kinds="svg")
    strokes = re.findall(r'<path [^>]*stroke="#0072B2"[^>]*>', path.read_text())
    looks = [dict(re.findall(r'(stroke-width|opacity)="([\d.]+)"', stroke)) for stroke in strokes]
    assert looks == [{"stroke-width": "7", "opacity": "0.4"}] * 2


def test_what_was_asked_lies_thin_and_dashed_in_ink_over_what_was_done(constant):
    (path,) = draw([constant], names=["request-rate"], kinds="svg")
    lines = re.findall(r"<path [^>]*>", path.read_text())
    done, asked = (
        next(at for at, line in enumerate(lines) if mark in line)
        for mark in ('stroke="#0072B2"', "dasharray")
    )
    assert done < asked
    assert 'stroke="#222222"' in lines[asked]
    assert 'stroke-width="1"' in lines[asked]


def test_a_dark_figure_has_a_dark_ground(constant):
    light, dark = (
        draw([constant], names=["request-rate"], kinds="svg", theme=theme)[0].read_text()
        for theme in ("light", "dark")
    )
    assert 'fill="#1B1D21"' in dark
    assert 'fill="#1B1D21"' not in light


@pytest.mark.parametrize(
    ("asked", "output", "found"),
    [
        (None, None, ("png",)),
        (None, "a.svg", ("svg",)),
        (None, "folder", ("png",)),
        ("png, SVG,png", None, ("png", "svg")),
        ("html", "a.HTML", ("html",)),
    ],
)
def test_the_format_is_the_one_asked_for_or_the_names(asked, output, found):
    assert formats(asked, output and Path(output)) == found


@pytest.mark.parametrize(
    ("asked", "output", "sentence"),
    [
        ("pmg", None, "--format pmg: must be of png, svg, html. Did you mean png?"),
        (",", None, "--format: names no format; give some of png, svg, html, separated by commas."),
        ("png", "a.svg", "-o a.svg: ends with .svg, and --format says png; leave one of them out."),
    ],
)
def test_a_format_that_cannot_be(asked, output, sentence):
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        formats(asked, output and Path(output))


def test_one_file_is_for_one_figure():
    assert destination(Path("r"), Path("a.svg"), ["x"], ["svg"]) == {("x", "svg"): Path("a.svg")}
    assert destination(Path("r"), Path("out"), ["x"], ["svg"]) == {("x", "svg"): Path("out/x.svg")}
    with pytest.raises(UsageError, match=r"-o a\.svg: is one file for 2 figures; choose one with --figure"):
        destination(Path("r"), Path("a.svg"), ["x", "y"], ["svg"])


def test_a_place_that_cannot_be_written_to(constant, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        UsageError, match=r"request-rate\.png: cannot be written: .* Choose another place with -o\."
    ):
        draw([constant], names=["request-rate"], output=tmp_path / "file")
