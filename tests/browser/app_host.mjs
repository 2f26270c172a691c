// A host of apps: the official bridge, with a page in a frame whose origin is its own.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

window.showApp = async ({ html, hostContext, input, result }) => {
  const frame = document.querySelector("iframe");
  const about = { name: "host", version: "1" };
  window.bridge = new AppBridge(null, about, { serverTools: {} }, { hostContext });
  bridge.oncalltool = ({ name, arguments: values }) => window.callServer([name, values]);
  bridge.onsizechange = ({ height }) => (frame.style.height = `${height}px`);
  const ready = new Promise((resolve) => (bridge.oninitialized = resolve));
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.srcdoc = html;
  await ready;
  await bridge.sendToolInput({ arguments: input });
  await bridge.sendToolResult(result);
};
