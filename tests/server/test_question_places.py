"""Who may be asked, and who waits in a thread, where not all can be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from mcp_app.conf import Limits
from mcp_app.interface.errors import TooManyQuestions
from mcp_app.pools.user_threads import Owner
from mcp_app.server.conversation import Place, QuestionPlaces


class Scene:
    """A process with places, and the calls that hold some of them."""

    def __init__(self, threads: int = 8, **limits: object) -> None:
        self.places = QuestionPlaces(Limits(**limits), threads)  # type: ignore[arg-type]
        self.gave_up: list[str] = []
        self._open: dict[str, ExitStack] = {}

    def ask(
        self,
        person: str,
        name: str = "",
        *,
        questions: int = 1,
        in_thread: bool = True,
        stranger: bool = False,
    ) -> None:
        """Let a call wait; it goes on waiting when it was told to give up."""
        name = name or person
        assert name not in self._open
        place = Place(
            owner=Owner(person, stranger),
            questions=questions,
            in_thread=in_thread,
            give_up=lambda: self.gave_up.append(name),
        )
        with ExitStack() as stack:
            stack.enter_context(self.places.held(place))
            self._open[name] = stack.pop_all()

    def end(self, *names: str) -> None:
        """Let calls that wait end."""
        for name in names:
            self._open.pop(name).close()

    def end_all(self) -> None:
        self.end(*self._open)
        assert not self.places._open
        assert not self.places._in_threads


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.end_all()


def test_one_person_has_so_many_questions_open(scene: Scene) -> None:
    for number in range(6):
        scene.ask("maria", f"{number}", in_thread=False)
    scene.ask("maria", "two", questions=2, in_thread=False)
    with pytest.raises(TooManyQuestions) as refused:
        scene.ask("maria", "more", in_thread=False)
    assert "8 wait for an answer, 1 more cannot be asked" in str(refused.value)
    scene.ask("jan", in_thread=False)
    scene.end("two")
    with pytest.raises(TooManyQuestions, match=r"6 wait .* 3 more"):
        scene.ask("maria", "three", questions=3, in_thread=False)
    scene.ask("maria", "more", in_thread=False)
    assert scene.gave_up == []


def test_nobody_in_particular_has_as_many_as_there_are(scene: Scene) -> None:
    for number in range(20):
        scene.ask("", f"{number}", in_thread=False, stranger=True)


def test_half_of_the_threads_may_wait(scene: Scene) -> None:
    people = ["a", "b", "c", "d"]
    for person in people:
        scene.ask(person)
    with pytest.raises(TooManyQuestions, match="waits for as many people as it can"):
        scene.ask("e")
    scene.ask("e", in_thread=False)
    scene.end("e", "c")
    scene.ask("e")
    assert scene.gave_up == []


def test_who_has_most_gives_the_oldest_up(scene: Scene) -> None:
    for number in range(3):
        scene.ask("maria", f"maria {number}")
    scene.ask("jan", "jan 0")
    with pytest.raises(TooManyQuestions):
        scene.ask("maria", "maria 3")
    scene.ask("eva")
    assert scene.gave_up == ["maria 0"]
    # All have about as many: nobody takes from anybody.
    for person in ("maria", "jan", "eva", "tom"):
        if person != "tom":
            with pytest.raises(TooManyQuestions):
                scene.ask(person, "more")
    scene.ask("tom")
    assert scene.gave_up == ["maria 0", "maria 1"]
    with pytest.raises(TooManyQuestions):
        scene.ask("ida")


def test_strangers_give_way_to_who_has_signed_in(scene: Scene) -> None:
    for number in range(4):
        scene.ask("", f"stranger {number}", stranger=True)
    with pytest.raises(TooManyQuestions):
        scene.ask("", "stranger 4", stranger=True)
    for person in ("maria", "jan", "eva", "tom"):
        scene.ask(person)
    assert scene.gave_up == [f"stranger {number}" for number in range(4)]
    with pytest.raises(TooManyQuestions):
        scene.ask("", "stranger 4", stranger=True)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_one_thread_may_always_wait(threads: int) -> None:
    scene = Scene(threads)
    scene.ask("", "stranger", stranger=True)
    scene.ask("maria")
    with pytest.raises(TooManyQuestions):
        scene.ask("jan")
    assert scene.gave_up == ["stranger"]
    scene.end_all()


def test_limits_can_be_switched_off() -> None:
    scene = Scene(2, rates=False)
    for number in range(20):
        scene.ask("maria", f"{number}")
    assert scene.gave_up == []
    scene.end_all()
