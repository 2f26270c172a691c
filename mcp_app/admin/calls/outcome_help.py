"""What each outcome of a call means, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from django.utils.translation import gettext_lazy as _

from mcp_app.interface.call_record import REFUSED, Outcome
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible


class Meaning(NamedTuple):
    """Texts for an outcome; `remedy` is "" if nobody needs to act."""

    label: Label
    means: Label
    remedy: Label


MEANINGS: Final[Mapping[str, Meaning]] = {
    Outcome.ANSWERED: Meaning(
        _("Answered"),
        _("The call did what it was asked to do, and its client has the answer."),
        "",
    ),
    Outcome.ASKED: Meaning(
        _("Asked"),
        _(
            "The call needs an answer from a person or from the client's model. When"
            " the client has this answer, it calls again; that second call has its"
            " own page."
        ),
        _("If such calls are never continued, this client cannot answer questions."),
    ),
    Outcome.TASK: Meaning(
        _("Became a task"),
        _(
            "The call runs in the background. Its client asks for the result later;"
            " each run of the task has its own page."
        ),
        _("If such tasks never end, look whether a process with free places serves."),
    ),
    Outcome.ARGUMENTS: Meaning(
        _("Wrong values"),
        _(
            "Nothing ran. The model sent arguments that the parameters do not allow,"
            " and the answer named them. It usually tries again at once."
        ),
        _(
            "If this happens often, the description of the parameter is unclear. Write"
            " the format of the parameter into its description."
        ),
    ),
    Outcome.INVALID: Meaning(
        _("Wrong request"),
        _(
            "Nothing ran. The client broke a rule of the protocol, or asked for"
            " something that this server does not offer. A model cannot repair such a"
            " request."
        ),
        _("Bring the client up to date, or tell those who make it."),
    ),
    Outcome.UNKNOWN: Meaning(
        _("Unknown"),
        _(
            "Nothing ran. The definition was renamed, taken off the lists or stopped,"
            " or it never existed. The client may have an old list."
        ),
        _(
            "Reconnect the client, so that it reads the lists again. If there should be"
            " a definition with this name, check whether it is published."
        ),
    ),
    Outcome.FORBIDDEN: Meaning(
        _("No right"),
        _(
            "Nothing ran. The definition exists, but this caller may not use it: a"
            " permission is missing, or the access token does not allow it. If the"
            " caller may not see it, the answer was that of a name that is unknown."
        ),
        _(
            "If this person should use it, check which right it requires. Give the"
            " right to one of their groups, or make another token."
        ),
    ),
    Outcome.SWITCHED_OFF: Meaning(
        _("Stopped"),
        _(
            "Nothing ran. Somebody has stopped this definition, its server, or all"
            " tools that change things. The client was told not to try again."
        ),
        _(
            "Check who stopped it, and why. Start it again when there is no reason any"
            " more to keep it stopped."
        ),
    ),
    Outcome.LIMITED: Meaning(
        _("Too often"),
        _(
            "Nothing ran. One person may call this tool only so many times a minute."
            " The model was told how long to wait. Other people are not affected."
        ),
        _(
            "If this happens in usual work, raise “Calls per minute” of the tool, or"
            " offer a tool that takes many items in one call."
        ),
    ),
    Outcome.INCAPABLE: Meaning(
        _("Client cannot"),
        _(
            "The call needs its client to do something, such as to ask a person or"
            " its model, but this client said that it cannot."
        ),
        _(
            "Use another client, or a newer version of this one. Or ask a developer to"
            " change the function so that it does not need this."
        ),
    ),
    Outcome.TOOL_ERROR: Meaning(
        _("Reported an error"),
        _(
            "The tool ran, and refused with a message that the model reads. This is"
            " often right, for example for an order that does not exist or a date in"
            " the past."
        ),
        _("If this happens often, add the rule to the description."),
    ),
    Outcome.OTHER_SITE: Meaning(
        _("Other site"),
        _(
            "The tool calls another site. That site did not accept this site's key,"
            " was asked too often, failed, took too long, or was not there. The client"
            " was told no more than that."
        ),
        _(
            "If the other site did not accept this site's key, ask a developer to"
            " change the key in the settings."
        ),
    ),
    Outcome.EGRESS: Meaning(
        _("Not allowed"),
        _(
            "Nothing was sent: the name of the other site led to an address that is"
            " not public. The client was told that this site's rules refused the call."
        ),
        _(
            "If the other site is in a private network, ask a developer to name that"
            " network in the settings."
        ),
    ),
    Outcome.CRASHED: Meaning(
        _("Crashed"),
        _(
            "The code has a fault, or met something unexpected. The same call will"
            " most likely fail again."
        ),
        _(
            "Give the error number to the developers: it leads to the details in the"
            " site's log. Until the code is repaired, stop the definition, so that"
            " models do not keep trying."
        ),
    ),
    Outcome.TIMED_OUT: Meaning(
        _("Too slow"),
        _(
            "The call did not end within its time limit. Nobody knows whether it had"
            " an effect, because its code may still run in its thread."
        ),
        _(
            "Check whether other calls were too slow at the same time. If the"
            " definition needs more time, raise its time limit."
        ),
    ),
    Outcome.TOO_LARGE: Meaning(
        _("Too large"),
        _(
            "The call ran, but its answer was not sent, because no model could read"
            " so much."
        ),
        _(
            "Change the function to return less: a page, a summary, or a link to a"
            " resource. The maximum size of an answer is in the setting"
            " MCP[“LIMITS”], that of another site's answer in MCP[“HTTP”]."
        ),
    ),
    Outcome.SHAPE: Meaning(
        _("Wrong shape"),
        _(
            "The call ran. Its result does not match the output schema of the tool"
            " (“The answer's shape”), or cannot be written as JSON. Clients rely on"
            " the schema, so the result was not sent."
        ),
        _("Give the text above to the developers, or correct the output schema."),
    ),
    Outcome.CANCELLED: Meaning(
        _("Cancelled"),
        _(
            "The client, or somebody who runs this site, cancelled the call before it"
            " had ended. Nobody knows whether it had an effect."
        ),
        _("If people often cancel such calls, the definition may be too slow."),
    ),
    Outcome.CLIENT_GONE: Meaning(
        _("Client gone"),
        _(
            "The connection broke, or the client stopped waiting, before there was an"
            " answer."
        ),
        _(
            "If this happens to many calls, look at the timeouts of the proxy in"
            " front of the site."
        ),
    ),
    Outcome.SHUT_DOWN: Meaning(
        _("Shut down"),
        _(
            "The process was stopped, for example by a deployment, and the call did"
            " not end in time. Nobody knows whether it had an effect."
        ),
        _(
            "Check whether the call has done its work before anybody repeats it. If"
            " deployments cut off calls, raise the limit “drain” (MCP[“LIMITS”])."
        ),
    ),
    Outcome.UNAVAILABLE: Meaning(
        _("Not available"),
        _(
            "The database could not be reached, all threads were busy, or a limit was"
            " reached. Nothing is wrong with the call itself: the client was told that"
            " it can try again in a moment."
        ),
        _(
            "Check whether the database works, and which calls are running. If this"
            " happens for a longer time, more processes or more threads"
            " (MCP[“THREADS”]) help."
        ),
    ),
    Outcome.FAILED: Meaning(
        _("Server failed"),
        _(
            "A fault in the MCP server itself, not in the tool. The site's log says"
            " more."
        ),
        _("Give the developers the time of the call, and the log of that time."),
    ),
}


def meaning_of(outcome: str) -> Meaning:
    """Return the texts for an outcome; for one of a later release, just its name."""
    text = _("This version of the software does not know this outcome.")
    return MEANINGS.get(outcome) or Meaning(visible(outcome), text, "")


def outcome_look(outcome: str) -> str:
    """Return the CSS class of an outcome's mark."""
    if outcome in (Outcome.ANSWERED, Outcome.ASKED, Outcome.TASK):
        return "good"
    if outcome in (Outcome.CANCELLED, Outcome.CLIENT_GONE):
        return ""
    return "warn" if outcome in REFUSED else "bad"
