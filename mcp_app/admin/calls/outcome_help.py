"""What each outcome of a call means, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from django.utils.translation import gettext_lazy as _

from mcp_app.interface.call_record import Outcome
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible


@dataclass(frozen=True, slots=True)
class Advice:
    """A step; `link` names a target: "change", "stop", "similar" or "live"."""

    text: Label
    link: str = ""


@dataclass(frozen=True, slots=True)
class Meaning:
    """Texts for an outcome; `look` is the CSS class of its mark.

    `told` says what the client got if the call log has no error text.
    """

    label: Label
    look: str
    means: Label
    advice: tuple[Advice, ...]
    told: Label


NOTHING_RAN: Final = _("Nothing ran.")
NOBODY: Final = _(
    "The client was told nothing, because it no longer waited for the answer."
)


def _meaning(
    label: Label,
    means: Label,
    told: Label,
    *advice: Label | Advice,
    look: str = "bad",
) -> Meaning:
    steps = (each if isinstance(each, Advice) else Advice(each) for each in advice)
    return Meaning(label, look, means, tuple(steps), told)


_refusal = partial(_meaning, look="warn")


MEANINGS: Final[Mapping[str, Meaning]] = {
    Outcome.ANSWERED: _meaning(
        _("Answered"),
        _("The call did what it was asked to do, and its client has the answer."),
        _("The client got the answer."),
        look="good",
    ),
    Outcome.ASKED: _meaning(
        _("Asked"),
        _(
            "The call needs an answer from a person or from the client's model. When"
            " the client has this answer, it calls again; that second call has its"
            " own page."
        ),
        _("The client got a question."),
        Advice(
            _(
                "If such calls are never continued, this client cannot answer"
                " questions."
            ),
            "similar",
        ),
        look="good",
    ),
    Outcome.ARGUMENTS: _refusal(
        _("Wrong values"),
        _(
            "Nothing ran. The model sent arguments that the parameters do not allow,"
            " and the answer named them. It usually tries again at once."
        ),
        _("The client was told that the arguments do not fit."),
        Advice(
            _(
                "If this happens often, the description of the parameter is unclear."
                " Write the format of the parameter into its description."
            ),
            "change",
        ),
    ),
    Outcome.INVALID: _refusal(
        _("Wrong request"),
        _(
            "Nothing ran. The client broke a rule of the protocol, or asked for"
            " something that this server does not offer. A model cannot repair such a"
            " request."
        ),
        _("The client was told that its request is wrong."),
        _("Bring the client up to date, or tell those who make it."),
    ),
    Outcome.UNKNOWN: _refusal(
        _("Unknown"),
        _(
            "Nothing ran. The definition was renamed, taken off the lists or stopped,"
            " or it never existed. The client may have an old list."
        ),
        _("The client was told that there is nothing with this name."),
        _("Reconnect the client, so that it reads the lists again."),
        _(
            "If there should be a definition with this name, check whether it is"
            " published."
        ),
    ),
    Outcome.FORBIDDEN: _refusal(
        _("No right"),
        _(
            "Nothing ran. The definition exists, but this caller may not use it: a"
            " permission is missing, or the access token does not allow it. The"
            " client got the same answer as for a name that does not exist."
        ),
        _("The client was told that there is nothing with this name."),
        Advice(
            _("If this person should use it, check which right it requires."), "change"
        ),
        _("Give the right to one of their groups, or make another token."),
    ),
    Outcome.SWITCHED_OFF: _refusal(
        _("Stopped"),
        _(
            "Nothing ran. Somebody has stopped this definition, its server, or all"
            " tools that change things. The client was told not to try again."
        ),
        _(
            "The client was told that the people who run this site have switched this"
            " off."
        ),
        Advice(
            _(
                "Check who stopped it, and why. Start it again when there is no reason"
                " any more to keep it stopped."
            ),
            "stop",
        ),
    ),
    Outcome.LIMITED: _refusal(
        _("Too often"),
        _(
            "One person may call this tool only so many times a minute. The model was"
            " told how long to wait. Other people are not affected."
        ),
        NOTHING_RAN,
        Advice(
            _(
                "If this happens in usual work, raise “Calls per minute” of the tool,"
                " or offer a tool that takes many items in one call."
            ),
            "change",
        ),
    ),
    Outcome.INCAPABLE: _refusal(
        _("Client cannot"),
        _(
            "The call needs its client to do something, such as to ask a person or"
            " its model, but this client said that it cannot."
        ),
        _("The client was told that it lacks a capability."),
        _("Use another client, or a newer version of this one."),
        _("Or ask a developer to change the function so that it does not need this."),
    ),
    Outcome.TOOL_ERROR: _refusal(
        _("Reported an error"),
        _(
            "The tool ran, and refused with a message that the model reads. This is"
            " often right, for example for an order that does not exist or a date in"
            " the past."
        ),
        _("The message of the tool; its text is not stored."),
        Advice(_("If this happens often, add the rule to the description."), "change"),
    ),
    Outcome.OTHER_SITE: _meaning(
        _("Other site"),
        _(
            "The tool calls another site. That site did not accept this site's key,"
            " was asked too often, failed, took too long, or was not there."
        ),
        _("The client was told that the other site did not do it."),
        _(
            "If the other site did not accept this site's key, ask a developer to"
            " change the key in the settings."
        ),
    ),
    Outcome.EGRESS: _meaning(
        _("Not allowed"),
        _(
            "Nothing was sent: the name of the other site led to an address that is"
            " not public."
        ),
        _("The client was told that this site's rules refused the call."),
        _("Read the error: it names the rule."),
        _(
            "If the other site is in a private network, ask a developer to name that"
            " network in the settings."
        ),
    ),
    Outcome.CRASHED: _meaning(
        _("Crashed"),
        _(
            "The code has a fault, or met something unexpected. The same call will"
            " most likely fail again."
        ),
        _("The client was told that the call failed."),
        _(
            "Give the error number to the developers. It leads to the details in the"
            " site's log."
        ),
        Advice(
            _(
                "Until the code is repaired, stop the definition, so that models do not"
                " keep trying."
            ),
            "stop",
        ),
    ),
    Outcome.TIMED_OUT: _meaning(
        _("Too slow"),
        _(
            "The call did not end within its time limit. Nobody knows whether it had"
            " an effect, because its code may still run in its thread."
        ),
        _("The client was told that the call took too long."),
        Advice(
            _("Check whether other calls were too slow at the same time."), "similar"
        ),
        Advice(_("If the definition needs more time, raise its time limit."), "change"),
    ),
    Outcome.TOO_LARGE: _meaning(
        _("Too large"),
        _(
            "The call ran, but its answer was not sent, because no model could read"
            " so much."
        ),
        _("The client was told that the answer is too large."),
        Advice(
            _(
                "Change the function to return less: a page, a summary, or a link to a"
                " resource."
            ),
            "change",
        ),
        _("The maximum size of an answer is in the setting MCP[“LIMITS”]."),
    ),
    Outcome.SHAPE: _meaning(
        _("Wrong shape"),
        _(
            "The call ran. Its result does not match the output schema of the tool"
            " (“The answer's shape”), or cannot be written as JSON. Clients rely on"
            " the schema, so the result was not sent."
        ),
        _("The client was told that the answer cannot be sent."),
        Advice(
            _(
                "Give the text under “What the client was told” to the developers, or"
                " correct the output schema."
            ),
            "change",
        ),
    ),
    Outcome.CANCELLED: _meaning(
        _("Cancelled"),
        _(
            "The client, or somebody who runs this site, cancelled the call before it"
            " had ended. Nobody knows whether it had an effect."
        ),
        NOBODY,
        Advice(
            _("If people often cancel such calls, the definition may be too slow."),
            "similar",
        ),
        look="",
    ),
    Outcome.CLIENT_GONE: _meaning(
        _("Client gone"),
        _(
            "The connection broke, or the client stopped waiting, before there was an"
            " answer."
        ),
        NOBODY,
        _(
            "If this happens to many calls, look at the timeouts of the proxy in"
            " front of the site."
        ),
        look="",
    ),
    Outcome.SHUT_DOWN: _meaning(
        _("Shut down"),
        _(
            "The process was stopped, for example by a deployment, and the call did"
            " not end in time. Nobody knows whether it had an effect."
        ),
        _("The client was told that the process stopped before the call had ended."),
        _("Check whether the call has done its work before anybody repeats it."),
        _("If deployments cut off calls, raise the limit “drain” (MCP[“LIMITS”])."),
    ),
    Outcome.UNAVAILABLE: _meaning(
        _("Not available"),
        _(
            "The database could not be reached, all threads were busy, or a limit was"
            " reached. Nothing is wrong with the call itself, so it may work if the"
            " client tries again."
        ),
        _("The client was told that it can try again in a moment."),
        Advice(
            _("Check whether the database works, and which calls are running."), "live"
        ),
        _(
            "If this happens for a longer time, more processes or more threads"
            " (MCP[“THREADS”]) help."
        ),
    ),
    Outcome.FAILED: _meaning(
        _("Server failed"),
        _(
            "A fault in the MCP server itself, not in the tool. The site's log says"
            " more."
        ),
        _("The client was told that the server failed."),
        _("Give the developers the time of the call, and the log of that time."),
    ),
}


def meaning_of(outcome: str) -> Meaning:
    """Return the texts for an outcome; for one of a later release, just its name."""
    return MEANINGS.get(outcome) or _meaning(
        visible(outcome),
        _("This version of the software does not know this outcome."),
        "",
    )
