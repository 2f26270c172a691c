/* The page's side of MCP Apps (ext-apps, 2026-01-26): `mcpApp` speaks to the host. */
(() => {
  "use strict";
  const root = document.documentElement;
  const waiting = new Map();
  let count = 0;

  const post = (message) => window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  const tell = (method, params = {}) => post({ method, params });
  const ask = (method, params = {}) =>
    new Promise((resolve, reject) => {
      waiting.set((count += 1), { resolve, reject });
      post({ id: count, method, params });
    });
  const textOf = (result) =>
    (result.content || []).map((block) => block.text || "").join("\n");

  const app = {
    /** What the host says of itself: theme, locale, sizes. */
    host: {},
    /** The arguments of the call whose answer is shown. */
    input: {},
    oninput: () => {},
    onresult: () => {},
    oncancel: () => {},
    onhost: () => {},
    /** Call a tool of this server; throws what the tool says if it fails. */
    async call(name, values = {}) {
      const result = await ask("tools/call", { name, arguments: values });
      if (result.isError) throw new Error(textOf(result));
      return result;
    },
    read: (uri) => ask("resources/read", { uri }),
    open: (url) => ask("ui/open-link", { url }),
    say: (text) =>
      ask("ui/message", { role: "user", content: [{ type: "text", text }] }),
    textOf,
  };
  window.mcpApp = app;

  function useHost(context) {
    Object.assign(app.host, context);
    const { theme, locale, styles } = context;
    if (theme) root.style.colorScheme = root.dataset.theme = theme;
    if (locale) root.lang = locale;
    for (const [name, value] of Object.entries(styles?.variables || {}))
      if (value) root.style.setProperty(name, value);
    app.onhost(app.host);
  }

  const handlers = {
    "ui/notifications/tool-input": (params) => {
      app.input = params.arguments || {};
      app.oninput(app.input);
    },
    "ui/notifications/tool-result": (params) => app.onresult(params),
    "ui/notifications/tool-cancelled": (params) => app.oncancel(params.reason),
    "ui/notifications/host-context-changed": useHost,
  };

  let size = "";
  function tellSize() {
    const height = Math.ceil(root.getBoundingClientRect().height);
    const params = { width: window.innerWidth, height };
    if (size !== (size = JSON.stringify(params)))
      tell("ui/notifications/size-changed", params);
  }

  window.addEventListener("message", ({ source, data }) => {
    if (source !== window.parent || data?.jsonrpc !== "2.0") return;
    if (data.method === undefined) {
      const { resolve, reject } = waiting.get(data.id) || {};
      waiting.delete(data.id);
      if (data.error) reject?.(new Error(data.error.message));
      else resolve?.(data.result);
    } else if (data.id === undefined) {
      handlers[data.method]?.(data.params || {});
      // A frame out of sight is not drawn, and its observer does not run.
      tellSize();
    } else if (["ping", "ui/resource-teardown"].includes(data.method))
      post({ id: data.id, result: {} });
    else post({ id: data.id, error: { code: -32601, message: "Unknown method" } });
  });

  window.addEventListener("DOMContentLoaded", async () => {
    const { hostContext } = await ask("ui/initialize", {
      protocolVersion: "2026-01-26",
      appInfo: { name: document.title || "app", version: "1" },
      appCapabilities: {},
    });
    useHost(hostContext || {});
    tell("ui/notifications/initialized");
    new ResizeObserver(tellSize).observe(root);
    tellSize();
  });
})();
