/* The admin as a host of MCP Apps (ext-apps, 2026-01-26) that shows, and does nothing. */
"use strict";
(() => {
    const MAX_HEIGHT = 800;
    const MAX_LINES = 20;
    const MAX_LETTERS = 500;
    const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
    const textOf = (value) =>
        (typeof value === "string" ? value : `${JSON.stringify(value)}`).slice(0, MAX_LETTERS).replace(HIDDEN, "\uFFFD");

    function note(list, method, params) {
        if (list.childElementCount >= MAX_LINES) return;
        const isCall = method === "tools/call";
        const words = isCall ? { NAME: params.name, VALUES: params.arguments || {} } : { NAME: method, VALUES: params };
        const line = document.createElement("li");
        line.textContent = list.dataset[isCall ? "mcpCall" : "mcpOther"].replace(/NAME|VALUES/g, (word) => textOf(words[word]));
        list.append(line);
    }

    // In the head, before there is a frame: a page asks once, as soon as it is there.
    addEventListener("message", ({ source, data }) => {
        const part = document.querySelector("[data-mcp-preview]");
        const frame = part?.querySelector("iframe");
        if (!frame || source !== frame.contentWindow || data?.jsonrpc !== "2.0") return;
        const { id, method } = data;
        const params = data.params ?? {};
        const post = (message) => source.postMessage({ jsonrpc: "2.0", ...message }, "*");
        const { tool, input, result } = JSON.parse(part.querySelector("script").textContent);
        if (method === "ui/initialize") {
            const theme = getComputedStyle(frame).colorScheme.includes("dark") ? "dark" : "light";
            const containerDimensions = { width: frame.clientWidth, maxHeight: MAX_HEIGHT };
            const toolInfo = { tool: { ...tool, inputSchema: { type: "object" } } };
            const hostContext = { theme, locale: document.documentElement.lang, containerDimensions, toolInfo };
            const hostInfo = { name: "Django admin", version: "1" };
            post({ id, result: { protocolVersion: "2026-01-26", hostInfo, hostCapabilities: {}, hostContext } });
        } else if (method === "ui/notifications/initialized") {
            post({ method: "ui/notifications/tool-input", params: { arguments: input } });
            post({ method: "ui/notifications/tool-result", params: result });
        } else if (method === "ui/notifications/size-changed") frame.style.height = `${Math.min(MAX_HEIGHT, params.height)}px`;
        else if (method === "ping") post({ id, result: {} });
        else if (method !== undefined && id !== undefined) {
            post({ id, error: { code: -32000, message: "This is a preview: nothing is done." } });
            note(part.querySelector("ul"), method, params);
        }
    });
})();
