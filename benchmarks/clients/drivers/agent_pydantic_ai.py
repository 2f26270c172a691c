"""pydantic-ai: an agent with a scripted model."""

from __future__ import annotations

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import (
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import FunctionModel
from scripted_agents import main


async def run(url, script):
    def model(messages, info):
        for each in messages[-1].parts:
            if isinstance(each, ToolReturnPart | RetryPromptPart):
                script.read.append(str(each.content))
        call = script.next_call()
        return ModelResponse([ToolCallPart(*call) if call else TextPart("Done.")])

    async with Agent(FunctionModel(model), toolsets=[MCPToolset(url)]) as agent:
        await agent.run("Go.")


main(run)
