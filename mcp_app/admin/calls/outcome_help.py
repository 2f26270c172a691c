"""What each outcome of a call means, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext_lazy as _

from mcp_app.interface.labels import Label
from mcp_app.interface.outcomes import Outcome
from mcp_app.interface.rules import visible


@dataclass(frozen=True, slots=True)
class Advice:
    """A step; `link` names a target: "change", "stop", "similar" or "live"."""

    text: Label
    link: str = ""


@dataclass(frozen=True, slots=True)
class Meaning:
    """Texts for an outcome; `look` is the CSS class of its mark.

    `happened` ends the sentence about a call. `told` says what the client got if the
    call log has no error text.
    """

    label: Label
    look: str
    happened: Label
    means: Label
    advice: tuple[Advice, ...]
    told: Label


NOTHING_RAN: Final = _("Nothing ran.")
NOBODY: Final = _("Nothing. The client no longer waited for the answer.")
SHOW: Final = Advice(_("Check whether other calls ended like this."), "similar")

MEANINGS: Final[Mapping[str, Meaning]] = {
    Outcome.ANSWERED: Meaning(
        _("Answered"),
        "good",
        _("It was answered."),
        _("The call did what it was asked to do, and its client has the answer."),
        (),
        _("It got its answer."),
    ),
    Outcome.ASKED: Meaning(
        _("Asked"),
        "good",
        _("It asked a question first."),
        _(
            "The call needs an answer from a person or from the client's model. The "
            "client calls again when it has one; that is a call of its own here."
        ),
        (
            Advice(
                _(
                    "If such calls are never continued, this client cannot answer"
                    " questions."
                ),
                "similar",
            ),
        ),
        _("It got a question."),
    ),
    Outcome.ARGUMENTS: Meaning(
        _("Wrong arguments"),
        "bad",
        _("The arguments that the client sent do not fit."),
        _(
            "Nothing ran. The model sent arguments that the parameters do not allow,"
            " and the answer named them. It usually tries again at once."
        ),
        (
            Advice(
                _("Read what the client was told: which argument was wrong, and why.")
            ),
            Advice(
                _(
                    "If it happens often, the description is misleading. Say the"
                    " format of that parameter in its description."
                ),
                "change",
            ),
            SHOW,
        ),
        _("That its arguments do not fit."),
    ),
    Outcome.INVALID: Meaning(
        _("Wrong request"),
        "bad",
        _("The request itself is wrong."),
        _(
            "Nothing ran. The client broke a rule of the protocol, or asked for"
            " something that this server does not offer. A model cannot repair that."
        ),
        (
            Advice(_("Read what the client was told.")),
            Advice(_("Bring the client up to date, or tell those who make it.")),
            SHOW,
        ),
        _("That its request is wrong."),
    ),
    Outcome.UNKNOWN: Meaning(
        _("Unknown"),
        "bad",
        _("There is nothing with the name that it asked for."),
        _(
            "Nothing ran. The definition was renamed, taken off the lists or stopped,"
            " or it never existed. The client may have an old list."
        ),
        (
            Advice(_("Reconnect the client, so that it reads the lists again.")),
            Advice(_("If it should be there, check whether it is published.")),
            SHOW,
        ),
        _("That there is nothing with this name."),
    ),
    Outcome.FORBIDDEN: Meaning(
        _("No right"),
        "bad",
        _("Its caller lacks a right."),
        _(
            "Nothing ran. The definition exists, but this caller may not use it: a"
            " permission is missing, or the access token does not allow it. The"
            " client got the same answer as for a name that does not exist."
        ),
        (
            Advice(
                _("If this person should use it, check which right it requires."),
                "change",
            ),
            Advice(_("Give the right to one of their groups, or make another token.")),
            SHOW,
        ),
        _("That there is nothing with this name."),
    ),
    Outcome.SWITCHED_OFF: Meaning(
        _("Stopped"),
        "bad",
        _("It is stopped."),
        _(
            "Nothing ran. Somebody has stopped it, or its server, or all tools that "
            "change things. The client was told not to try again."
        ),
        (
            Advice(
                _(
                    "Check who stopped it, and why. Start it again when the reason is"
                    " gone."
                ),
                "stop",
            ),
            SHOW,
        ),
        _("That it is switched off by the people who run this site."),
    ),
    Outcome.INCAPABLE: Meaning(
        _("Client cannot"),
        "bad",
        _("The client cannot do what the call needs."),
        _(
            "The call needs its client to do something, such as to ask a person or"
            " its model, but this client said that it cannot."
        ),
        (
            Advice(_("Use a client that can; newer versions often can.")),
            Advice(
                _("Or ask a developer to change the function so that it works without.")
            ),
            SHOW,
        ),
        _("That it lacks a capability."),
    ),
    Outcome.TOOL_ERROR: Meaning(
        _("Tool error"),
        "bad",
        _("The tool itself said no."),
        _(
            "The function ran, and refused with a message that the model reads. This"
            " is often right, for example for an order that does not exist or a date"
            " in the past."
        ),
        (
            Advice(_("Read what the client was told.")),
            Advice(
                _("If this happens often, add the rule to the description."),
                "change",
            ),
            SHOW,
        ),
        _("The message of the tool; its text is not stored."),
    ),
    Outcome.CRASHED: Meaning(
        _("Crashed"),
        "bad",
        _("The code behind it failed."),
        _(
            "The code has a fault, or met something unexpected. The same call will"
            " most likely fail again."
        ),
        (
            Advice(
                _(
                    "Give the error number to the developers. It leads to the details"
                    " in the site's log."
                )
            ),
            Advice(
                _("Until it is repaired, stop it, so that models do not keep trying."),
                "stop",
            ),
            SHOW,
        ),
        _("That it failed."),
    ),
    Outcome.TIMED_OUT: Meaning(
        _("Too slow"),
        "bad",
        _("It took longer than it may."),
        _(
            "It did not end within its time limit. Nobody knows whether it had an"
            " effect, because its code may still run in its thread."
        ),
        (
            Advice(
                _("Check whether other calls were too slow at the same time."),
                "similar",
            ),
            Advice(_("If it needs longer, raise its time limit."), "change"),
        ),
        _("That it took too long."),
    ),
    Outcome.TOO_LARGE: Meaning(
        _("Too large"),
        "bad",
        _("Its answer is larger than the limit."),
        _(
            "The call ran, but its answer was not sent, because no model could read"
            " so much."
        ),
        (
            Advice(
                _(
                    "Change the function to return less: a page, a summary, or a link"
                    " to a resource."
                ),
                "change",
            ),
            Advice(_("The maximum size of an answer is in the setting MCP[“LIMITS”].")),
            SHOW,
        ),
        _("That the answer is too large."),
    ),
    Outcome.SHAPE: Meaning(
        _("Wrong shape"),
        "bad",
        _("Its result does not match the tool's output schema, or cannot be sent."),
        _(
            "The call ran. Its result does not match the output schema of the tool"
            " (“The answer's shape”), or cannot be written as JSON. Clients rely on the"
            " schema, so the result was not sent."
        ),
        (
            Advice(
                _("Give the text to the developers, or correct the output schema."),
                "change",
            ),
            SHOW,
        ),
        _("That the answer cannot be sent."),
    ),
    Outcome.CANCELLED: Meaning(
        _("Cancelled"),
        "",
        _("It was cancelled."),
        _(
            "The client, or somebody who runs this site, cancelled it before it had"
            " ended. Nobody knows whether it had an effect."
        ),
        (Advice(_("If people often give up, it may be too slow."), "similar"),),
        NOBODY,
    ),
    Outcome.CLIENT_GONE: Meaning(
        _("Client gone"),
        "",
        _("Its client went away before the answer."),
        _(
            "The connection broke, or the client stopped waiting, before there was an "
            "answer."
        ),
        (
            Advice(
                _("If it happens to many, look at the time-outs of the proxy in front.")
            ),
            SHOW,
        ),
        NOBODY,
    ),
    Outcome.SHUT_DOWN: Meaning(
        _("Shut down"),
        "bad",
        _("The process that ran it was stopped."),
        _(
            "The process was stopped, for example by a deployment, and the call did"
            " not end in time. Nobody knows whether it had an effect."
        ),
        (
            Advice(
                _("Check whether it has done its work before anybody calls it again.")
            ),
            Advice(_("If deployments cut off calls, raise the limit “drain”.")),
            SHOW,
        ),
        _("That this process stopped before the call was done."),
    ),
    Outcome.UNAVAILABLE: Meaning(
        _("Not available"),
        "bad",
        _("The server could not run it now."),
        _(
            "The database could not be reached, all threads were busy, or a limit was"
            " reached. The call itself is right, and may work in a moment."
        ),
        (
            Advice(
                _("Check whether the database works, and which calls are running."),
                "live",
            ),
            Advice(
                _("If it lasts, more processes or more threads (MCP[“THREADS”]) help.")
            ),
            SHOW,
        ),
        _("That it can try again in a moment."),
    ),
    Outcome.FAILED: Meaning(
        _("Server failed"),
        "bad",
        _("This server failed."),
        _(
            "A fault in the MCP server itself, not in the tool. The site's log says"
            " more."
        ),
        (
            Advice(
                _("Give the developers the time of the call, and the log of that time.")
            ),
            SHOW,
        ),
        _("That the server failed."),
    ),
}

FINE: Final = (Outcome.ANSWERED, Outcome.ASKED, Outcome.CANCELLED, Outcome.CLIENT_GONE)
"""Outcomes that are not failures: nobody needs to act."""
FAILED: Final = tuple(each.value for each in Outcome if each not in FINE)


def meaning_of(outcome: str) -> Meaning:
    """Return the texts for an outcome; for one of a later release, just its name."""
    return MEANINGS.get(outcome) or Meaning(
        visible(outcome),
        "bad",
        _("It failed."),
        _("This version of the software does not know this outcome."),
        (),
        "",
    )
