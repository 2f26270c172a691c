"""langchain: an agent with a scripted model."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from scripted_agents import main


class Model(BaseChatModel):
    script: Any

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        if isinstance(messages[-1], ToolMessage):
            self.script.read.append(messages[-1].text)
        said = AIMessage("Done.")
        if call := self.script.next_call():
            number = str(len(self.script.read))
            calls = [{"name": call[0], "args": call[1], "id": number}]
            said = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=said)])


async def run(url, script):
    client = MultiServerMCPClient({"site": {"transport": "http", "url": url}})
    # `get_tools` opens a session for each call, and tasks of strangers are a session's.
    async with client.session("site") as session:
        agent = create_agent(Model(script=script), await load_mcp_tools(session))
        await agent.ainvoke({"messages": [("user", "Go.")]})


main(run)
