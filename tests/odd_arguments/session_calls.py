"""Valid calls of labelling sessions."""

from collections.abc import Callable
from typing import Any

import agents
import selectenv
from selectenv.evaluation.value_bounds import value_bounds
from tests.odd_arguments import small_objects as small
from tests.odd_arguments.judge import Call
from tests.odd_arguments.library_calls import constants, uniform_table


def session(**given: Any) -> Any:
    """Make a session and use it as its first user would."""
    with selectenv.LabellingSession(**given) as made:
        query = made.ask()
        if query is not None:
            made.tell(query.id, 1.0)
        return made.policy().action(made.dataset.ids[0])


def method(name: str) -> Callable[..., Any]:
    def call(**arguments: Any) -> Any:
        made = selectenv.LabellingSession(small.dataset_without_rewards(), "terminal", 3)
        made.tell(made.ask().id, 1.0)
        made.ask(2)
        return getattr(made, name)(**arguments)

    return call


def open_session(**given: Any) -> Any:
    path = small.folder() / "session.sqlite"
    if not path.exists():
        selectenv.LabellingSession(small.dataset_without_rewards(), "uniform", 3, path).close()
    given = {"path": path, **given}
    with selectenv.LabellingSession.open(**given) as made:
        return made.status().left


def policy(**given: Any) -> Any:
    found = selectenv.LabellingSession(small.dataset_without_rewards(), "terminal", 3).policy()
    if "path" in given:
        return found.save(**given)
    found.probabilities(**given)
    return found.action(**given)


def bounds(**given: Any) -> Any:
    return value_bounds(small.dataset_without_rewards(), **given).regret


def last_id() -> Any:
    made = selectenv.LabellingSession(small.dataset_without_rewards(), "terminal", 3)
    return made.ask(3)[-1].id


CALLS = [
    Call(
        "LabellingSession",
        session,
        {
            "dataset": small.dataset_without_rewards,
            **constants(strategy="uniform", budget=2, path=None, seed=0, answers_per_query=1, lease=600.0),
            **constants(labels_per_refit=None, occupancy="normalised", learner="uds", gamma=0.9, impute=0),
            **constants(reward_range=(-1, 1)),
        },
    ),
    Call(
        "LabellingSession, an agent",
        session,
        {"strategy": lambda: agents.make("guided")},
        fixed={"dataset": small.dataset_without_rewards},
    ),
    Call(
        "LabellingSession.open",
        open_session,
        constants(dataset=None, strategy=None, learner=None),
    ),
    Call("LabellingSession.open, a path", open_session, {"path": lambda: small.folder() / "session.sqlite"}),
    Call("session.ask", method("ask"), constants(k=1, annotator="ann", lease=5.0, keep=False)),
    Call("session.tell", method("tell"), {"id": last_id, **constants(answer=1.0, annotator="ann")}),
    Call("session.tell_many", method("tell_many"), {"answers": lambda: {last_id(): 1.0}}),
    Call("session.skip", method("skip"), {"id": last_id, "annotator": lambda: "ann"}),
    Call("session.release", method("release"), {"id": last_id, "annotator": lambda: "ann"}),
    Call("session.hand_out", method("hand_out"), {"id": last_id, "annotator": lambda: ""}),
    Call("session.undo", method("undo"), constants(annotator="")),
    Call("session.retract", method("retract"), {"id": lambda: method("answers")()[0].id, "annotator": lambda: None}),
    Call("session.query", method("query"), {"id": last_id}),
    Call("session.bounds", method("bounds"), constants(low=-1.0, high=1.0)),
    Call("session.set_reward_range", method("set_reward_range"), constants(low=-1.0, high=1.0)),
    Call("session.curve", method("curve"), constants(low=-1.0, high=1.0)),
    Call("session.should_stop", method("should_stop"), constants(regret=0.5, low=-1.0, high=1.0)),
    Call("policy.action", policy, {"state": lambda: 0}),
    Call("policy.save", policy, {"path": lambda: small.folder() / "policy.npz"}),
    Call(
        "value_bounds",
        bounds,
        {
            "rewards": lambda: small.dataset().hidden_reward,
            "policy": uniform_table,
            **constants(gamma=0.9, low=-20.0, high=20.0),
        },
    ),
]
