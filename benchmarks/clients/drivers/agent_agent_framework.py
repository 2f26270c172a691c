"""agent-framework: an agent with a scripted model."""

from __future__ import annotations

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    MCPStreamableHTTPTool,
    Message,
)
from scripted_agents import main


class Model(FunctionInvocationLayer, BaseChatClient):
    script = None

    async def _inner_get_response(self, *, messages, stream, options, **kwargs):
        for each in messages[-1].contents:
            if each.type == "function_result":
                self.script.read.append(str(each.result))
        said = Content.from_text("Done.")
        if call := self.script.next_call():
            number = str(len(self.script.read))
            said = Content.from_function_call(number, call[0], arguments=call[1])
        return ChatResponse(messages=[Message("assistant", [said])])


async def run(url, script):
    model = Model()
    model.script = script
    async with MCPStreamableHTTPTool("site", url) as tool:
        await Agent(model, tools=[tool]).run("Go.")


main(run)
