"""openai-agents: an agent with a scripted model."""

from __future__ import annotations

import json

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from scripted_agents import main


class Scripted(Model):
    def __init__(self, script):
        self.script = script

    async def get_response(self, system_instructions, input, *args, **kwargs):
        items = [] if isinstance(input, str) else input
        outputs = [each["output"] for each in items if "output" in each]
        self.script.read[:] = [str(each) for each in outputs]
        if call := self.script.next_call():
            said = ResponseFunctionToolCall(
                type="function_call",
                name=call[0],
                arguments=json.dumps(call[1]),
                call_id=str(len(outputs)),
            )
        else:
            text = ResponseOutputText(type="output_text", text="Done.", annotations=[])
            said = ResponseOutputMessage(
                type="message",
                id="1",
                role="assistant",
                status="completed",
                content=[text],
            )
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


async def run(url, script):
    set_tracing_disabled(True)
    async with MCPServerStreamableHttp(params={"url": url}) as server:
        agent = Agent("it", mcp_servers=[server], model=Scripted(script))
        await Runner.run(agent, "Go.")


main(run)
