"""What each outcome of a call means, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
NOBODY: Final = _(
    "The client was told nothing, because it no longer waited for the answer."
)
SHOW: Final = Advice(_("Check whether other calls ended like this."), "similar")

MEANINGS: Final[Mapping[str, Meaning]] = {
    Outcome.ANSWERED: Meaning(
        _("Answered"),
        "good",
        _("The call was answered."),
        _("The call did what it was asked to do, and its client has the answer."),
        (),
        _("The client got the answer."),
    ),
    Outcome.ASKED: Meaning(
        _("Asked"),
        "good",
        _("The call asked a question first."),
        _(
            "The call needs an answer from a person or from the client's"
            " model. When the client has this answer, it calls again; that"
            " second call has its own page."
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
        _("The client got a question."),
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
                    "If this happens often, the description of the parameter is"
                    " unclear. Write the format of the parameter into its"
                    " description."
                ),
                "change",
            ),
            SHOW,
        ),
        _("The client was told that the arguments do not fit."),
    ),
    Outcome.INVALID: Meaning(
        _("Wrong request"),
        "bad",
        _("The request itself is wrong."),
        _(
            "Nothing ran. The client broke a rule of the protocol, or"
            " asked for something that this server does not offer. A model"
            " cannot repair such a request."
        ),
        (
            Advice(_("Read what the client was told.")),
            Advice(_("Bring the client up to date, or tell those who make it.")),
            SHOW,
        ),
        _("The client was told that its request is wrong."),
    ),
    Outcome.UNKNOWN: Meaning(
        _("Unknown"),
        "bad",
        _("There is nothing with the name that the client asked for."),
        _(
            "Nothing ran. The definition was renamed, taken off the lists or stopped,"
            " or it never existed. The client may have an old list."
        ),
        (
            Advice(_("Reconnect the client, so that it reads the lists again.")),
            Advice(
                _(
                    "If there should be a definition with this name, check whether"
                    " it is published."
                )
            ),
            SHOW,
        ),
        _("The client was told that there is nothing with this name."),
    ),
    Outcome.FORBIDDEN: Meaning(
        _("No right"),
        "bad",
        _("The caller lacks a right."),
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
        _("The client was told that there is nothing with this name."),
    ),
    Outcome.SWITCHED_OFF: Meaning(
        _("Stopped"),
        "bad",
        _("What was called is stopped."),
        _(
            "Nothing ran. Somebody has stopped this definition, its"
            " server, or all tools that change things. The client was told"
            " not to try again."
        ),
        (
            Advice(
                _(
                    "Check who stopped it, and why. Start it again when there is"
                    " no reason any more to keep it stopped."
                ),
                "stop",
            ),
            SHOW,
        ),
        _(
            "The client was told that the people who run this site have"
            " switched this off."
        ),
    ),
    Outcome.LIMITED: Meaning(
        _("Too often"),
        "bad",
        _("The person called the tool too often."),
        _(
            "One person may call this tool only so many times a minute. The model was"
            " told how long to wait. Other people are not affected."
        ),
        (
            Advice(
                _(
                    "If this happens in usual work, raise “Calls per minute” of the"
                    " tool, or offer a tool that takes many items in one call."
                ),
                "change",
            ),
            SHOW,
        ),
        NOTHING_RAN,
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
            Advice(_("Use another client, or a newer version of this one.")),
            Advice(
                _(
                    "Or ask a developer to change the function so that it does not"
                    " need this."
                )
            ),
            SHOW,
        ),
        _("The client was told that it lacks a capability."),
    ),
    Outcome.TOOL_ERROR: Meaning(
        _("Tool error"),
        "bad",
        _("The tool itself refused."),
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
    Outcome.OTHER_SITE: Meaning(
        _("Other site"),
        "bad",
        _("The other site refused the call, or could not be reached."),
        _(
            "The tool calls another site. That site refused the request, failed, took"
            " too long, or was not there."
        ),
        (
            Advice(_("Read what the client was told.")),
            Advice(
                _(
                    "If the other site did not accept this site's key, ask a developer"
                    " to change the key in the settings."
                )
            ),
            Advice(_("If it refuses what clients send, change the call."), "change"),
            SHOW,
        ),
        _("The client was told that the other site did not do it."),
    ),
    Outcome.EGRESS: Meaning(
        _("Call not allowed"),
        "bad",
        _("This site's rules refused to call the other site. Nothing was sent."),
        _(
            "The name of the other site led to an address that is not public, or a"
            " value of the client would have led to another place of that site."
        ),
        (
            Advice(_("Read the error: it names the rule.")),
            Advice(
                _(
                    "If the other site is in a private network, ask a developer to name"
                    " that network in the settings."
                )
            ),
            SHOW,
        ),
        _("The client was told that this site's rules refused the call."),
    ),
    Outcome.CRASHED: Meaning(
        _("Crashed"),
        "bad",
        _("The code behind the definition failed."),
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
                _(
                    "Until the code is repaired, stop the definition, so that"
                    " models do not keep trying."
                ),
                "stop",
            ),
            SHOW,
        ),
        _("The client was told that the call failed."),
    ),
    Outcome.TIMED_OUT: Meaning(
        _("Too slow"),
        "bad",
        _("The call took longer than its time limit."),
        _(
            "The call did not end within its time limit. Nobody knows"
            " whether it had an effect, because its code may still run in"
            " its thread."
        ),
        (
            Advice(
                _("Check whether other calls were too slow at the same time."),
                "similar",
            ),
            Advice(
                _("If the definition needs more time, raise its time limit."), "change"
            ),
        ),
        _("The client was told that the call took too long."),
    ),
    Outcome.TOO_LARGE: Meaning(
        _("Too large"),
        "bad",
        _("The answer is larger than the limit."),
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
        _("The client was told that the answer is too large."),
    ),
    Outcome.SHAPE: Meaning(
        _("Wrong shape"),
        "bad",
        _("The result does not match the tool's output schema, or cannot be sent."),
        _(
            "The call ran. Its result does not match the output schema of the tool"
            " (“The answer's shape”), or cannot be written as JSON. Clients rely on the"
            " schema, so the result was not sent."
        ),
        (
            Advice(
                _(
                    "Give the text under “What the client was told” to the"
                    " developers, or correct the output schema."
                ),
                "change",
            ),
            SHOW,
        ),
        _("The client was told that the answer cannot be sent."),
    ),
    Outcome.CANCELLED: Meaning(
        _("Cancelled"),
        "",
        _("The call was cancelled."),
        _(
            "The client, or somebody who runs this site, cancelled the"
            " call before it had ended. Nobody knows whether it had an"
            " effect."
        ),
        (
            Advice(
                _("If people often cancel such calls, the definition may be too slow."),
                "similar",
            ),
        ),
        NOBODY,
    ),
    Outcome.CLIENT_GONE: Meaning(
        _("Client gone"),
        "",
        _("The client went away before the answer."),
        _(
            "The connection broke, or the client stopped waiting, before there was an "
            "answer."
        ),
        (
            Advice(
                _(
                    "If this happens to many calls, look at the timeouts of the"
                    " proxy in front of the site."
                )
            ),
            SHOW,
        ),
        NOBODY,
    ),
    Outcome.SHUT_DOWN: Meaning(
        _("Shut down"),
        "bad",
        _("The process that ran the call was stopped."),
        _(
            "The process was stopped, for example by a deployment, and the call did"
            " not end in time. Nobody knows whether it had an effect."
        ),
        (
            Advice(
                _("Check whether the call has done its work before anybody repeats it.")
            ),
            Advice(
                _(
                    "If deployments cut off calls, raise the limit “drain”"
                    " (MCP[“LIMITS”])."
                )
            ),
            SHOW,
        ),
        _("The client was told that the process stopped before the call had ended."),
    ),
    Outcome.UNAVAILABLE: Meaning(
        _("Not available"),
        "bad",
        _("The server could not run the call at that time."),
        _(
            "The database could not be reached, all threads were busy, or"
            " a limit was reached. Nothing is wrong with the call itself,"
            " so it may work if the client tries again."
        ),
        (
            Advice(
                _("Check whether the database works, and which calls are running."),
                "live",
            ),
            Advice(
                _(
                    "If this happens for a longer time, more processes or more"
                    " threads (MCP[“THREADS”]) help."
                )
            ),
            SHOW,
        ),
        _("The client was told that it can try again in a moment."),
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
        _("The client was told that the server failed."),
    ),
}


def meaning_of(outcome: str) -> Meaning:
    """Return the texts for an outcome; for one of a later release, just its name."""
    return MEANINGS.get(outcome) or Meaning(
        visible(outcome),
        "bad",
        _("The call failed."),
        _("This version of the software does not know this outcome."),
        (),
        "",
    )
