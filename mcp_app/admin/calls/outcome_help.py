"""What the outcome of a call means, and what to do: one catalogue for all pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext_lazy as _

from mcp_app.admin.page.wording import Said
from mcp_app.interface.outcomes import Outcome
from mcp_app.interface.rules import visible


@dataclass(frozen=True, slots=True)
class Advice:
    """A step; `link` names where it leads: the definition, its stop, such calls."""

    text: Said
    link: str = ""


@dataclass(frozen=True, slots=True)
class Meaning:
    """Texts for an outcome; `look` is the class of its mark.

    `happened` ends the sentence about a call, `told` stands where no text was kept of
    what its client was told.
    """

    label: Said
    look: str
    happened: Said
    means: Said
    advice: tuple[Advice, ...]
    told: Said


NOTHING_RAN: Final = _("Nothing ran.")
NOBODY: Final = _("Nothing. Nobody waited for the answer any more.")
SHOW: Final = Advice(_("See whether other calls ended like this."), "similar")

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
                _("If such calls never go on, this client cannot answer."), "similar"
            ),
        ),
        _("It got a question."),
    ),
    Outcome.ARGUMENTS: Meaning(
        _("Wrong arguments"),
        "bad",
        _("What the client sent does not fit."),
        _(
            "Nothing ran. The model has sent arguments that the parameters do not "
            "allow, and was told which. It usually tries again at once."
        ),
        (
            Advice(
                _("Read what the client was told: which argument was wrong, and why.")
            ),
            Advice(
                _(
                    "If it happens often, the description misleads: say the format of "
                    "that parameter in its description."
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
            "Nothing ran. The client has broken a rule of the protocol, or sent what "
            "this server does not offer. No model can mend that."
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
        _("Nothing has the name that it asked for."),
        _(
            "Nothing ran. What the client asked for was renamed, taken off the lists "
            "or stopped, or never was there. A client may remember an old list."
        ),
        (
            Advice(_("Reconnect the client, so that it reads the lists again.")),
            Advice(_("If it should be there, look whether it is published.")),
            SHOW,
        ),
        _("That nothing has this name."),
    ),
    Outcome.FORBIDDEN: Meaning(
        _("No right"),
        "bad",
        _("Its caller lacks a right."),
        _(
            "Nothing ran. It is there, and this caller may not use it: a permission is "
            "missing, or the access token is for less. The client was told the same as "
            "for a name that does not exist."
        ),
        (
            Advice(
                _("If this person should use it, look which right it needs."), "change"
            ),
            Advice(_("Give the right to a group of theirs, or make another token.")),
            SHOW,
        ),
        _("That nothing has this name."),
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
                _("Look who has stopped it, and why; start it when that is over."),
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
            "The call needs something of its client, such as to ask a person or its "
            "model, and this client has said that it cannot."
        ),
        (
            Advice(_("Use a client that can do it; newer versions often can.")),
            Advice(_("Or let the function do without.")),
            SHOW,
        ),
        _("That it lacks a capability."),
    ),
    Outcome.TOOL_ERROR: Meaning(
        _("Said no"),
        "bad",
        _("The tool itself said no."),
        _(
            "The function ran, and refused with a sentence of its own that the model "
            "reads. This is often as it should be: an order that does not exist, a "
            "date in the past."
        ),
        (
            Advice(_("Read what the client was told.")),
            Advice(
                _("If models run into it often, say the rule in the description."),
                "change",
            ),
            SHOW,
        ),
        _("What the tool said; the text was not kept."),
    ),
    Outcome.CRASHED: Meaning(
        _("Crashed"),
        "bad",
        _("The code behind it failed."),
        _(
            "The code behind it has a fault, or met something that it does not expect. "
            "The same call will most likely fail again."
        ),
        (
            Advice(
                _(
                    "Give the error number to the developers: it finds what happened "
                    "in the site's log."
                )
            ),
            Advice(
                _("Until it is mended, stop it, so that models do not keep trying."),
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
            "It did not end within its time limit. Nobody knows whether it had an "
            "effect: what it had begun may go on in its thread."
        ),
        (
            Advice(
                _("See whether others were too slow at the same time."),
                "similar",
            ),
            Advice(_("If it needs longer, raise its time limit."), "change"),
        ),
        _("That it took too long."),
    ),
    Outcome.TOO_LARGE: Meaning(
        _("Too large"),
        "bad",
        _("Its answer is larger than it may be."),
        _("The call ran, and its answer was not sent: no model could read so much."),
        (
            Advice(
                _("Let it return less: a page, a summary, or a link to a resource."),
                "change",
            ),
            Advice(_("The setting MCP[“LIMITS”] has the greatest size of an answer.")),
            SHOW,
        ),
        _("That the answer is too large."),
    ),
    Outcome.SHAPE: Meaning(
        _("Wrong shape"),
        "bad",
        _("Its answer is not of the shape that was promised."),
        _(
            "The call ran, and what it returned does not fit the answer's shape, or "
            "cannot be sent. Clients rely on the shape, so nothing was sent."
        ),
        (
            Advice(
                _("Give the text to the developers, or mend the answer's shape."),
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
            "The client, or somebody who runs this site, ended it before it was done. "
            "Nobody knows whether it had an effect."
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
            "The process ended, as at a deployment, and the call had not ended when "
            "its time was over. Nobody knows whether it had an effect."
        ),
        (
            Advice(_("Look whether it has done its work before it is called again.")),
            Advice(
                _("If deployments cut calls off, give them longer: the limit “drain”.")
            ),
            SHOW,
        ),
        _("That this process stopped before the call was done."),
    ),
    Outcome.UNAVAILABLE: Meaning(
        _("Not available"),
        "bad",
        _("The server could not run it now."),
        _(
            "The database could not be reached, or all threads were busy, or a limit "
            "was reached. The call itself is not at fault, and may work in a moment."
        ),
        (
            Advice(_("Look at the database, and at what runs now."), "live"),
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
            "A fault of the MCP server itself, not of what stands behind the tool. The "
            "site's log says more."
        ),
        (
            Advice(
                _("Give the time of the call to the developers, with the log of then.")
            ),
            SHOW,
        ),
        _("That the server failed."),
    ),
}

FINE: Final = (Outcome.ANSWERED, Outcome.ASKED, Outcome.CANCELLED, Outcome.CLIENT_GONE)
"""Outcomes that are no failures: nobody need do anything."""
FAILED: Final = tuple(each.value for each in Outcome if each not in FINE)


def meaning_of(outcome: str) -> Meaning:
    """Return what an outcome means; one that a later release knows is only named."""
    return MEANINGS.get(outcome) or Meaning(
        visible(outcome),
        "bad",
        _("It failed."),
        _("This release does not know this outcome."),
        (),
        "",
    )
