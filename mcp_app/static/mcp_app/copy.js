/* Buttons that copy the text beside them; without this script users select it by hand. */
"use strict";
(() => {
    const mark = (text) => getSelection().selectAllChildren(text);
    async function copy(button) {
        const text = document.getElementById(button.dataset.mcpCopy);
        const status = document.getElementById(`${text.id}-copied`);
        try {
            await navigator.clipboard.writeText(text.textContent);
            status.textContent = button.dataset.mcpCopied;
        } catch {
            // Copying fails over plain HTTP or if it is forbidden: select the text for Ctrl+C.
            mark(text);
            status.textContent = button.dataset.mcpMarked;
        }
    }
    document.querySelectorAll("[data-mcp-copy]").forEach((button) => {
        button.hidden = false;
        button.addEventListener("click", () => copy(button));
    });
    // The code of a link: only the form sends it to a server.
    const code = document.querySelector("[data-mcp-code]");
    if (code && location.hash) {
        code.value = location.hash.slice(1);
        history.replaceState(null, "", location.pathname);
    }
})();
