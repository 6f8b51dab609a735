"""The labelling page in Chromium: by keyboard, over reloads, undo, a killed server, two tabs, on a phone."""

import csv
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

import selectenv
from experiments.cli import main as cli
from tests.experiments.labelling.browser import BACKSPACE, CHROMIUM, DRIVER, ENTER, Browser
from tests.experiments.labelling.page_pictures import take_pictures
from tests.experiments.labelling.served_page import robot_log, served
from tests.markdown_pages import ROOT

pytestmark = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="no Chromium with its driver here")
STATE = "return [...document.querySelectorAll('.fields dd')].map(one => one.innerText).join(', ')"
OVERFLOW = "return document.documentElement.scrollWidth - innerWidth"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("downloads")) as made:
        yield made


@pytest.fixture(scope="module")
def log():
    return robot_log()


@pytest.fixture
def path(log, tmp_path):
    found = tmp_path / "labels.sqlite"
    with selectenv.LabellingSession(log, "terminal-guided", 12, found) as session:
        session.set_reward_range(-20, 10)
    return found


@contextmanager
def running(path):
    """Run `selectenv label serve` and yield the process and the link."""
    command = [sys.executable, "-m", "selectenv", "label", "serve", str(path), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process, process.stdout.readline().split()[-1]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def normal_size(browser):
    browser.devtools("Emulation.clearDeviceMetricsOverride", {})
    browser.devtools("Emulation.setTouchEmulationEnabled", {"enabled": False})


def progress(browser):
    return browser.run("return document.querySelector('progress').value")


def answers(path):
    with selectenv.LabellingSession.open(path) as session:
        return session.answers()


def test_label_by_keyboard_reload_undo_and_resume_after_a_kill(browser, path, tmp_path):
    with running(path) as (process, link):
        browser.go(link)
        browser.press_and_wait(ENTER)  # start
        for i in range(6):
            assert progress(browser) == i
            browser.press("3")  # the third common answer, 0
            assert browser.run("return document.querySelector('#reward').value") == "0"
            browser.press_and_wait(ENTER)
        state = browser.run(STATE)
        browser.reload()
        assert (browser.run(STATE), progress(browser)) == (state, 6)
        browser.press_and_wait("u")
        assert progress(browser) == 5
        assert browser.run(STATE) != state
        assert browser.run("return document.querySelector('#reward').value") == "0"  # what was answered before
        browser.press("5")
        browser.press_and_wait(ENTER)
        assert browser.run(STATE) == state
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert [answer.answer for answer in answers(path)] == [0, 0, 0, 0, 0, 10]
    with running(path) as (process, link):
        browser.go(link)
        assert progress(browser) == 6
        browser.press_and_wait(ENTER)
        assert browser.run(STATE) == state  # the question that was open is asked again
        browser.press_and_wait("s")
        assert browser.run(STATE) != state
        for i in range(6, 10):
            assert progress(browser) == i
            browser.click("#reward")
            browser.press("-3")  # digits are digits in the field
            browser.press_and_wait(ENTER)
        assert progress(browser) == 10
        assert [answer.answer for answer in answers(path)[6:]] == [-3.0] * 4
        folder = tmp_path / "downloads"
        folder.mkdir()
        browser.devtools("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
        browser.click("a[download]")
        browser.wait_for((folder / "labels.csv").exists)
        with open(folder / "labels.csv", newline="") as file:
            assert len({row["state"] for row in csv.DictReader(file)}) == 10
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
    out = tmp_path / "out"
    assert cli.main(["label", "export", str(path), "--out", str(out)]) == 0
    assert (out / "labels.csv").read_bytes() == (folder / "labels.csv").read_bytes()
    assert browser.complaints() == []


def test_two_tabs_share_the_queue(browser, log):
    session = selectenv.LabellingSession(log, "visitation", 8)
    with served(session) as page:
        tabs = [browser.tabs()[0], browser.new_tab()]
        for tab in tabs:
            browser.switch(tab)
            browser.go(page.link)
            browser.press_and_wait(ENTER)
        seen = []
        for i in range(7):
            browser.switch(tabs[i % 2])
            state = browser.run(STATE)
            seen.append(state)
            browser.press("1")
            browser.press_and_wait(ENTER)
        assert len(set(seen)) == 7
        assert len(session.answers()) == 7
        assert "open in other tabs" in browser.text("main")  # the second tab has the last question
        browser.switch(tabs[1])
        last = browser.run(STATE)
        assert last not in seen
        browser.close_tab()
        browser.switch(tabs[0])
        browser.wait_for(lambda: session.handed_out() == [])  # a closed tab gives its question back
        browser.press_and_wait(ENTER)
        assert browser.run(STATE) == last
        browser.press("1")
        browser.press_and_wait(ENTER)
        assert browser.text("h1") == "All 8 labels are there"
        assert len(session.labels()) == 8
    assert browser.complaints() == []


def test_numbers_for_each_action_by_keyboard_and_by_mouse(browser, log):
    session = selectenv.LabellingSession(log, "terminal", 2)
    session.set_reward_range(-20, 10)
    with served(session) as page:
        browser.go(page.link)
        browser.click("button.large")
        browser.wait("return document.querySelector('#answer')")
        browser.click(".modes label:nth-of-type(2)")
        shown = "return [...document.querySelectorAll('.actions input.per-action')].filter(i => i.offsetParent).length"
        actions = browser.run(shown)
        assert actions == len(session.query(session.handed_out()[0].id).actions)
        browser.press("51" + BACKSPACE + "3" * (actions - 1))
        browser.press("1")  # every field is filled
        browser.press_and_wait(ENTER)
        assert list(session.answers()[0].answer.values()) == [10.0] + [0.0] * (actions - 1)
        assert browser.run("return document.querySelector('[name=mode]:checked').value") == "action"
        browser.click(".modes label:nth-of-type(1)")
        browser.click("[data-choice='-10']")
        assert browser.run("return document.querySelector('[aria-pressed=true]').dataset.choice") == "-10"
        browser.click("#answer button.primary")
        browser.wait("return document.querySelector('h1').innerText === 'All 2 labels are there'")
        assert session.answers()[1].answer == -10.0
    assert browser.complaints() == []


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ("-5", "-5"),
        ("0.5", "0.5"),
        (".5", ".5"),
        ("-0.25", "-0.25"),
        ("10", "10"),
        ("1.5", "1.5"),
        ("70", "70"),
        ("5", "10"),
    ],
)
def test_numbers_typed_without_a_click_are_typed_into_the_field(browser, log, keys, value):
    session = selectenv.LabellingSession(log, "terminal", 1, reward_range=(-20, 100))
    with served(session, choices=[-20, -10, 0, 5, 10]) as page:
        browser.go(page.link)
        browser.press_and_wait(ENTER)
        assert browser.run("return document.activeElement.tagName") == "H1"
        browser.press(keys)
        assert browser.run("return document.querySelector('#reward').value") == value
        browser.press_and_wait(ENTER)
        assert session.answers()[0].answer == float(value)


def test_keys_in_several_fields(browser, log):
    session = selectenv.LabellingSession(log, "terminal", 1, reward_range=(-20, 10))
    shown = "return [...document.querySelectorAll('input.per-action')].map(field => field.value)"
    with served(session) as page:
        browser.go(page.link)
        browser.press_and_wait(ENTER)
        browser.click(".modes label:nth-of-type(2)")
        browser.press("5-12" + BACKSPACE)  # a choice for the first field, then a number in the second
        assert browser.run(shown)[:3] == ["10", "-1", ""]


def test_going_back_after_a_refused_answer(browser, log):
    session = selectenv.LabellingSession(log, "terminal", 2, reward_range=(-20, 10))
    with served(session) as page:
        browser.go(page.link)
        browser.press_and_wait(ENTER)
        state = browser.run(STATE)
        browser.press("-99")
        browser.press_and_wait(ENTER)
        assert "-99 is outside the range" in browser.text("#error")
        assert browser.run("return document.querySelector('#reward').value") == "-99"
        browser.press("1")
        browser.press_and_wait(ENTER)
        assert browser.run(STATE) != state
        browser.back()
        assert browser.run(STATE) == state
        browser.go("about:blank")
    assert session.answers()[0].answer == -20
    assert browser.complaints() == []


def test_the_page_fits_a_phone_and_a_laptop(browser, log):
    session = selectenv.LabellingSession(log, "terminal", 3)
    session.set_reward_range(-20, 10)
    with served(session) as page:
        try:
            for width, height, phone in ((360, 740, True), (1280, 800, False)):
                browser.resize(width, height, phone=phone)
                browser.go(page.link)
                assert browser.run(OVERFLOW) <= 0
                browser.click("button.large")
                browser.wait("return document.querySelector('#answer')")
                for mode in (1, 2, 3):
                    browser.click(f".modes label:nth-of-type({mode})")
                    assert browser.run(OVERFLOW) <= 0
                visible = "const box = document.querySelector('#answer .primary').getBoundingClientRect();"
                assert browser.run(f"{visible} return box.top > 0 && box.bottom <= innerHeight")
                small = (
                    "return [...document.querySelectorAll('#answer button')].filter(b => b.offsetHeight < 40).length"
                )
                assert browser.run(small) == 0  # large enough for a thumb
                assert browser.run("return document.activeElement.tagName") in ("H1", "INPUT")
        finally:
            normal_size(browser)
    assert browser.complaints() == []


def test_an_open_tab_keeps_its_question(browser, log):
    session = selectenv.LabellingSession(log, "terminal", 2, lease=0.6)
    with served(session) as page:
        browser.go(page.link)
        browser.press_and_wait(ENTER)
        (first,) = session.handed_out()
        browser.wait_for(lambda: any(one.until > first.until + 0.6 for one in session.handed_out()))
        session.tell(first.id, 1)  # somebody answers without asking
        browser.wait("return !document.querySelector('#lost').hidden")
        assert "Skip it to get another one" in browser.text("#lost")
        browser.press_and_wait("s")
        assert "Somebody else" in browser.text(".notice")
        browser.go("about:blank")  # this page would go on renewing its lease
    refused = [message for message in browser.complaints() if "409" not in message]
    assert refused == []


def test_text_of_the_log_does_not_run_in_the_browser(browser):
    nasty = "<script>window.broken = 1</script><img src=x onerror='window.broken = 2'>"
    data = selectenv.from_episodes([{"states": [nasty, "b", nasty], "actions": [nasty, "stay"]}])
    with served(selectenv.LabellingSession(data, "visitation", 1), annotator=nasty) as page:
        browser.go(page.link)
        browser.press_and_wait(ENTER)
        browser.press("1")
        browser.press_and_wait(ENTER)
        assert browser.run("return window.broken === undefined")
        assert nasty in browser.text("aside")
    assert browser.complaints() == []


def test_pictures_for_the_documentation(browser, tmp_path):
    try:
        take_pictures(browser, tmp_path)
    finally:
        normal_size(browser)
    for name, size in (("label-page.png", (1280, 1000)), ("label-page-phone.png", (390, 844))):
        for folder in (tmp_path, ROOT / "docs"):
            content = (folder / name).read_bytes()
            assert (int.from_bytes(content[16:20]), int.from_bytes(content[20:24])) == size
    assert browser.complaints() == []
