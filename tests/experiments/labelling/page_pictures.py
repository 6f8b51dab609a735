"""Pictures of the labelling page in docs/; `python -m tests.experiments.labelling.page_pictures` makes them again."""

import tempfile
from pathlib import Path

import selectenv
from tests.experiments.labelling.browser import ENTER, Browser
from tests.experiments.labelling.served_page import expert_answer, robot_log, served
from tests.markdown_pages import ROOT

SHOWN = "place=ward A, load=medicine"
"""The question in the pictures, the eleventh of the story."""


def take_pictures(browser, folder):
    """Label as in the story of the documentation; write what the page looks like on a desktop and on a phone."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "labels.sqlite"
        session = selectenv.LabellingSession(robot_log(), budget=12, path=path, unseen="exclude")
        with session, served(session) as page:
            session.set_reward_range(-20, 10)
            query = session.ask()
            while query.id != SHOWN:
                session.tell(query.id, expert_answer(query))
                query = session.ask()
            session.release(query.id)
            browser.resize(1280, 1000)
            browser.go(page.link)
            browser.press_and_wait(ENTER)
            browser.click(".modes label:nth-of-type(2)")
            browser.press("".join({0: "3", 10: "5", -20: "1"}[reward] for reward in expert_answer(query).values()))
            browser.picture(folder / "label-page.png")
            browser.resize(390, 844, phone=True, scale=1)
            browser.picture(folder / "label-page-phone.png")


def take_group_picture(browser, folder):
    """Write what a question about a group of vectors looks like."""
    data = selectenv.make_problem("CartPole", dataset_size=5_000, groups=40, rollouts=1).dataset
    with selectenv.LabellingSession(data.without_rewards, budget=6) as session, served(session) as page:
        browser.resize(1280, 1400)
        browser.go(page.link)
        browser.press_and_wait(ENTER)
        browser.picture(folder / "label-group.png")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as downloads, Browser(downloads) as browser:
        take_pictures(browser, ROOT / "docs")
        take_group_picture(browser, ROOT / "docs")
