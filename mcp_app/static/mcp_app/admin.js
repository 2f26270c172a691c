/* Progressive enhancement: pages also work without this script; the server decides. */
"use strict";
(() => {
    const PAUSE = 400;
    const LETTERS_OF_A_TOKEN = 4;
    const MOST_LISTED = 50;
    const all = (selector, within = document) => [...within.querySelectorAll(selector)];
    const after = (pause, run) => {
        let timer;
        return (...given) => {
            clearTimeout(timer);
            timer = setTimeout(run, pause, ...given);
        };
    };

    /* Rows: add, remove, move */
    const field = (row, name) => row.querySelector(`[name$="-${name}"]`);
    const rowsOf = (sheet) =>
        all("[data-mcp-row]", sheet.querySelector("[data-mcp-rows]")).filter((row) => !row.hidden);
    const nameOf = (row) => field(row, "name")?.value.trim() || row.querySelector("legend").textContent.trim();
    const say = (sheet, text) => (sheet.querySelector(".mcp-status").textContent = text);
    const filled = (sentence, values) =>
        sentence.replace(new RegExp(Object.keys(values).join("|"), "g"), (word) => values[word]);
    const tell = (sheet, sentence, values) =>
        say(sheet, filled(sheet.querySelector(".mcp-status").dataset[sentence], values));
    const isBlank = (row) =>
        !field(row, "was").value &&
        all("input:not([type=hidden], [type=checkbox], .mcp-place), textarea", row).every((input) => !input.value) &&
        !row.querySelector(".errorlist");

    function number(sheet) {
        const rows = rowsOf(sheet);
        rows.forEach((row, index) => {
            const legend = row.querySelector("[data-mcp-legend]");
            row.querySelector("[data-mcp-number]").textContent = index + 1;
            if (field(row, "name") && !row.classList.contains("mcp-message"))
                legend.textContent = field(row, "name").value.trim() || legend.dataset.mcpNew;
            all("[data-mcp-name]", row).forEach((place) => {
                place.textContent = row.classList.contains("mcp-message") ? index + 1 : legend.textContent;
            });
            all("[data-mcp-move]", row).forEach((button) => {
                button.hidden = !rows[index + Number(button.dataset.mcpMove)];
            });
            all("[data-mcp-remove]", row).forEach((button) => (button.hidden = false));
        });
        sheet.querySelector(".mcp-empty").hidden = rows.length > 0;
    }

    function place(sheet) {
        rowsOf(sheet).forEach((row, index) => {
            // A number alone would make an empty row count as filled in.
            field(row, "ORDER").value = isBlank(row) ? "" : index + 1;
        });
    }

    function add(sheet) {
        const total = sheet.querySelector('[name$="-TOTAL_FORMS"]');
        const holder = document.createElement("div");
        holder.append(sheet.querySelector("template").content.cloneNode(true));
        holder.innerHTML = holder.innerHTML.replaceAll("__prefix__", total.value);
        total.value = Number(total.value) + 1;
        const row = holder.firstElementChild;
        sheet.querySelector("[data-mcp-rows]").append(row);
        number(sheet);
        dress(row);
        return row;
    }

    function remove(sheet, row) {
        const rows = rowsOf(sheet);
        const next = rows[rows.indexOf(row) + 1] || rows[rows.indexOf(row) - 1];
        tell(sheet, "mcpRemoved", { NAME: nameOf(row) });
        field(row, "DELETE").checked = true;
        row.hidden = true;
        number(sheet);
        (next?.querySelector("[data-mcp-remove]") || sheet.querySelector("[data-mcp-add]")).focus();
    }

    function move(sheet, button) {
        const row = button.closest("[data-mcp-row]");
        const rows = rowsOf(sheet);
        const step = Number(button.dataset.mcpMove);
        const other = rows[rows.indexOf(row) + step];
        if (step < 0) other.before(row);
        else other.after(row);
        sheet.dataset.mcpMoved = "";
        place(sheet);
        number(sheet);
        const place_ = rowsOf(sheet).indexOf(row) + 1;
        tell(sheet, "mcpMoved", { NAME: nameOf(row), PLACE: place_, COUNT: rows.length });
        // Keep the focus on the button; at either end move it to the other one.
        (button.hidden ? row.querySelector("[data-mcp-move]:not([hidden])") : button)?.focus();
    }

    const wayOf = (sheet) => sheet.querySelector("[name$='-as']:checked")?.value;
    function start(sheet) {
        if (!sheet.classList.contains("mcp-both"))
            sheet.querySelector(".mcp-of-json textarea").readOnly = wayOf(sheet) !== "json";
        const table = sheet.querySelector("[data-mcp-rows]");
        if (!table) return;
        const total = sheet.querySelector('[name$="-TOTAL_FORMS"]');
        const least = Number(sheet.dataset.mcpLeast || 0);
        const rows = rowsOf(sheet);
        while (rows.length > least && isBlank(rows.at(-1))) {
            rows.pop().remove();
            total.value = Number(total.value) - 1;
        }
        const button = sheet.querySelector("[data-mcp-add]");
        button.hidden = false;
        number(sheet);
    }

    /* After a logout the server redirects to another page, and after another login the
       token of a form is no longer good. */
    const isOver = (response) => response.redirected || response.status === 403;
    async function renew(form, body) {
        const response = await fetch(location.href);
        const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
        for (const name of ["csrfmiddlewaretoken", "once"]) {
            const input = fresh.querySelector(`#${form.id} [name=${name}]`);
            if (!input) continue;
            form.elements[name].value = input.value;
            body.set(name, input.value);
        }
        return { isLogin: response.redirected };
    }
    const over = document.querySelector("[data-mcp-over]");
    async function send(url, body, part, signal) {
        const request = { method: "POST", body, signal };
        let response = await fetch(url, request);
        if (isOver(response)) {
            const { isLogin } = await renew(form, body);
            over.textContent = isLogin ? over.dataset.mcpOver : over.dataset.mcpForbidden;
            response = await fetch(url, request);
        }
        over.hidden = !isOver(response);
        if (!over.hidden) {
            const used = document.activeElement;
            (form.contains(used) ? used.closest("p, div") : part).before(over);
            over.scrollIntoView({ block: "nearest" });
        }
        return response;
    }

    /* Parts of a form that the server renders again */
    const form = document.querySelector("#content-main form[id$=_form]");
    const asked = new Map();
    /* What buttons of a part asked for, until an answer has it: also if the next one is pressed before. */
    const waiting = new Map();
    const fieldsIn = (part) => all("input, select, textarea", part);
    const stateOf = ({ value, checked, selectedOptions = [] }) => JSON.stringify([value, checked, ...[...selectedOptions].map((each) => each.value)]);
    const typedIn = (part) => JSON.stringify(fieldsIn(part).map(stateOf));
    async function draw(part, extra = {}) {
        const old = document.getElementById(`id_${part}`);
        // A script cannot put a chosen file into a new field.
        if (!form || !old || all("[type=file]", old).some((input) => input.files.length)) return void waiting.delete(part);
        // A browser opens few connections: what nobody waits for keeps none.
        const mine = new AbortController();
        asked.get(part)?.abort();
        asked.set(part, mine);
        const body = new FormData(form);
        const sent = typedIn(old);
        waiting.set(part, [...(waiting.get(part) || []), ...Object.entries(extra)]);
        waiting.get(part).forEach(([name, value]) => body.append(name, value));
        old.ariaBusy = true;
        try {
            const response = await send(`${address()}?part=${part}`, body, old, mine.signal);
            const text = await response.text();
            if (mine !== asked.get(part)) return;
            // If somebody typed meanwhile, ask again instead of losing it.
            if (typedIn(old) !== sent) return await draw(part);
            if (response.ok && !response.redirected) put(old, text);
        } catch {
            // If the server cannot be reached, leave the page unchanged.
        }
        if (mine !== asked.get(part)) return;
        waiting.delete(part);
        old.ariaBusy = null;
    }
    function put(old, text, typed = []) {
        const holder = document.createElement("div");
        holder.innerHTML = text;
        const fresh = holder.firstElementChild;
        const open = new Set(all("details[open]", old).map(firstName));
        const focused = document.activeElement;
        const { selectionStart, selectionEnd } = focused;
        const isInside = old !== focused && old.contains(focused);
        all("details", fresh).forEach((details) => {
            if (open.has(firstName(details))) details.open = true;
        });
        for (const { id, value, checked } of typed) Object.assign(fresh.querySelector(`#${CSS.escape(id)}`) || {}, { value, checked });
        const again = isInside && sameIn(fresh, focused, old);
        const isOld = old === focused;
        old.replaceWith(fresh);
        dress(fresh);
        all("[data-mcp-chips]").forEach(chips);
        if (isOld) fresh.focus({ preventScroll: true });
        if (!again) return;
        again.focus({ preventScroll: true });
        if (selectionStart != null) again.setSelectionRange(selectionStart, selectionEnd);
    }
    /* The form as it would be: the server shows it again, and saves nothing */
    async function showAgain(button) {
        const body = new FormData(form, button);
        const sent = new Map(fieldsIn(form).map((each) => [each.id, stateOf(each)]));
        const isTyped = (each) => each.id && ![undefined, stateOf(each)].includes(sent.get(each.id));
        button.disabled = true;
        try {
            const response = await send(button.formAction, body, button.parentElement);
            button.disabled = false;
            if (isOver(response)) return;
            const page = new DOMParser().parseFromString(await response.text(), "text/html");
            const parts = all("[data-mcp-sheet], [data-mcp-part], .mcp-hints", form).filter((old) => page.getElementById(old.id));
            if (!response.ok || !parts.length) throw new Error(response.statusText);
            parts.forEach((old) => put(old, page.getElementById(old.id).outerHTML, fieldsIn(old).filter(isTyped)));
            for (const name of DRAFTED)
                if (form.elements[name]) form.elements[name].placeholder = page.getElementById(`id_${name}`).placeholder;
        } catch {
            // What a refusal is, the browser shows best.
            button.disabled = false;
            delete button.dataset.mcpAgain;
            form.requestSubmit(button);
        }
    }
    const firstName = (details) => details.querySelector("[name]")?.name || "";
    /* Find the element of a fresh part that corresponds to the focused one. */
    function sameIn(fresh, focused, old) {
        const { id, name, type, value, localName } = focused;
        if (id) return fresh.querySelector(`#${CSS.escape(id)}`);
        if (name)
            return all("[name]", fresh).find(
                (each) => each.name === name && (type !== "radio" || each.value === value),
            );
        if (localName === "summary") {
            const same = firstName(focused.parentElement);
            return all("summary", fresh).find((each) => firstName(each.parentElement) === same);
        }
        return all(localName, fresh)[all(localName, old).indexOf(focused)];
    }
    function address() {
        const path = location.pathname.replace(/(add|change)\/$/, "");
        return `${path}preview/`;
    }
    const preview = after(PAUSE, () => all("[data-mcp-typed]").forEach(({ dataset }) => draw(dataset.mcpPart)));
    /* What is left empty is saved as drafted. */
    const DRAFTED = ["title", "description"];
    function drafts({ dataset }) {
        for (const name of DRAFTED)
            if (form?.elements[name]) form.elements[name].placeholder = dataset[`mcpDraft${name[0].toUpperCase()}${name.slice(1)}`] || "";
    }
    /* Draw the sheet around a button or select, and go on where that leads. */
    async function redrawSheet(target, extra) {
        const sheet = target.closest("[data-mcp-sheet]");
        const part = target.dataset.mcpRedraw || sheet.dataset.mcpSheet;
        const [{ id, name, value }, before] = [target, document.activeElement];
        await draw(part, extra);
        preview();
        // Whoever has gone on to another field stays there.
        const used = document.activeElement;
        if (![document.body, before].includes(used) && ![name, before.name || name].includes(used.name)) return;
        const fresh = document.querySelector(`[data-mcp-sheet="${part}"]`);
        const added = name.endsWith("-add") && (fresh.querySelector("[data-mcp-new] [name$=-lookup]") || fresh.querySelector("[data-mcp-new] :is(select, input:not([type=hidden]))"));
        const after_ = name === "show-remove" && document.getElementById(`id_${value.replace(/-\d+$/, "-add")}`);
        (added || after_ || document.getElementById(id) || fresh.querySelector("input:not([type=hidden]), select"))?.focus();
    }
    const listed = after(PAUSE, () => draw("config"));
    const variables = after(PAUSE, () => draw("suggestions"));

    /* Names that can be inserted into a text */
    let lastText = null;
    function names(source) {
        const sheet = document.querySelector(`[data-mcp-sheet="${source}"]`);
        if (sheet?.querySelector("[data-mcp-rows]")) return rowsOf(sheet).map((row) => field(row, "name").value.trim()).filter(Boolean);
        const template = document.querySelector(`[name="${source}"]`);
        if (!template) return null;
        const expressions = [...template.value.matchAll(/\{[+#./;?&]?([\w.,]+)\}/g)];
        return expressions.flatMap((found) => found[1].split(","));
    }
    function chips(line) {
        const shown = all(".mcp-chip", line).map((chip) => chip.textContent.slice(2, -2));
        const found = names(line.dataset.mcpSource) || shown;
        all(".mcp-chip", line).forEach((chip) => chip.remove());
        [...new Set(found)].forEach((name) => {
            const chip = document.createElement("button");
            chip.type = "button";
            chip.className = "mcp-chip";
            chip.textContent = `{{${name}}}`;
            line.append(chip, " ");
        });
        line.hidden = !found.length;
    }
    function insert(chip) {
        const line = chip.closest("[data-mcp-chips]");
        const target = document.getElementById(line.dataset.mcpChips) || lastText;
        if (!target?.isConnected) return;
        target.setRangeText(chip.textContent, target.selectionStart, target.selectionEnd, "end");
        target.focus();
        target.dispatchEvent(new Event("input", { bubbles: true }));
    }

    /* Counters */
    function count(area) {
        const holder = area.closest(".flex-container");
        if (!holder) return;
        let line = holder.nextElementSibling;
        if (!line?.classList.contains("mcp-count")) {
            line = document.createElement("div");
            line.className = "help mcp-count";
            holder.after(line);
        }
        const letters = [...area.value].length;
        const said = form?.querySelector("[data-mcp-counted]")?.dataset.mcpCounted || "";
        line.textContent = said
            .replace("CHARACTERS", letters.toLocaleString(document.documentElement.lang))
            .replace("TOKENS", Math.ceil(letters / LETTERS_OF_A_TOKEN).toLocaleString(document.documentElement.lang));
    }

    /* Set up the elements of the page, or of a new part of it. */
    function dress(within) {
        const found = (selector) => [...(within.matches?.(selector) ? [within] : []), ...all(selector, within)];
        found("[data-mcp-sheet]").forEach(start);
        found("[data-mcp-count]").forEach(count);
        found("[data-mcp-chips]").forEach(chips);
        found("[data-mcp-draft-title]").forEach(drafts);
    }

    let dirty = false;
    function changed(event) {
        const sheet = event.target.closest("[data-mcp-sheet]");
        if (!event.target.closest("[data-mcp-not-saved]")) dirty = true;
        if (event.target.matches("[data-mcp-count]")) count(event.target);
        if (event.target.name === "uri_template") variables();
        // Where there are more texts than the list has, those that hold what is typed.
        if (event.target.list?.options.length >= MOST_LISTED) listed();
        if (sheet?.querySelector("[data-mcp-rows]")) {
            number(sheet);
            if ("mcpMoved" in sheet.dataset) place(sheet);
        }
        all("[data-mcp-chips]").forEach(chips);
        preview();
    }
    function pressed(event) {
        const button = event.target.closest("button, a, input[type=submit]");
        if (!button) return;
        const sheet = button.closest("[data-mcp-sheet]");
        if (button.matches("[data-mcp-add]")) {
            const row = add(sheet);
            say(sheet, "");
            (field(row, "name") || row.querySelector("textarea, select, input")).focus();
        } else if (button.matches("[data-mcp-remove]")) remove(sheet, button.closest("[data-mcp-row]"));
        else if (button.matches("[data-mcp-move]")) move(sheet, button);
        else if (button.matches("button.mcp-chip")) return insert(button);
        else if (button.matches("[data-mcp-leave]")) return (dirty = false);
        else if (button.matches("[data-mcp-again]")) return void (event.preventDefault(), showAgain(button));
        else if (button.name?.startsWith("show-")) {
            event.preventDefault();
            const part = button.closest("[data-mcp-typed]")?.dataset.mcpPart;
            if (part) return void draw(part);
            redrawSheet(button, { [button.name]: button.value });
        } else return;
        dirty = true;
        all("[data-mcp-chips]").forEach(chips);
        preview();
    }

    /* Sections that reload periodically */
    const EVERY = 5000;
    const RARELY = 60000;
    const drawn = new WeakMap();
    /* A list: its cells change, and rows come and go; what is ticked stays */
    function renewRows(section, text) {
        const page = new DOMParser().parseFromString(text, "text/html");
        const fresh = page.querySelector("[data-mcp-list]");
        const rowsOf = (part) => new Map(all("tbody tr:has(a)", part).map((row) => [row.querySelector("a").pathname, row]));
        const [shown, rows] = [rowsOf(section), rowsOf(fresh)];
        if (!shown.size) section.replaceChildren(...fresh.childNodes);
        shown.forEach((row, name) => {
            const cells = rows.get(name)?.cells;
            if (!cells) return row.remove();
            [...cells].forEach((cell, at) => cell.querySelector("input") || (row.cells[at].innerHTML = cell.innerHTML));
        });
        section.querySelector("tbody")?.prepend(...[...rows].filter(([name]) => !shown.has(name)).map(([, row]) => row));
        return page.querySelector("[data-mcp-live-time] time").dateTime;
    }
    async function redraw(section) {
        const isUsed = () => section.contains(document.activeElement);
        if (isUsed()) return;
        const response = await fetch(section.dataset.mcpLive);
        // After a logout the server redirects to another page.
        if (!response.ok || response.redirected) throw new Error(response.statusText);
        const text = await response.text();
        if (section.matches("[data-mcp-list]")) return isUsed() ? null : renewRows(section, text);
        // What says the same is not announced again.
        if (!isUsed() && drawn.get(section) !== text) {
            section.innerHTML = text;
            drawn.set(section, text);
        }
        return response.headers.get("MCP-Updated");
    }
    function live(bar) {
        const button = bar.querySelector("[data-mcp-live-button]");
        const status = bar.querySelector("[data-mcp-live-status]");
        const sections = all("[data-mcp-live]");
        const every = Number(bar.dataset.mcpEvery) || EVERY;
        const end = Date.now() + (Number(bar.dataset.mcpFor) || Infinity);
        let pause = every;
        const time = bar.querySelector("[data-mcp-live-time] time");
        const late = () => bar.dataset.mcpLate.replace("TIME", time.textContent);
        async function update() {
            if (button.getAttribute("aria-pressed") === "true" && !document.hidden) {
                try {
                    const updated = (await Promise.all(sections.map(redraw))).find(Boolean);
                    if (updated) {
                        time.dateTime = updated;
                        time.textContent = updated.slice(11, 19);
                    }
                    pause = every;
                    status.textContent = "";
                } catch {
                    pause = Math.min(2 * pause, RARELY);
                    if (!status.textContent) status.textContent = late();
                }
            }
            if (Date.now() < end) return void setTimeout(update, pause);
            button.hidden = true;
            status.textContent = late();
        }
        button.hidden = false;
        button.addEventListener("click", () => {
            button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") !== "true");
        });
        setTimeout(update, pause);
    }

    /* A trial: its lines are shown while it runs */
    async function readLines(response, take) {
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let rest = "";
        for (;;) {
            const { done, value } = await reader.read();
            if (done) return;
            const lines = (rest + value).split("\n");
            rest = lines.pop();
            lines.forEach((line) => take(JSON.parse(line)));
        }
    }
    function trial(page) {
        const form = page.querySelector("form");
        const result = page.querySelector("[data-mcp-result]");
        let running = null;
        let wasOver = false;
        function wait() {
            const began = Date.now();
            const box = document.createElement("div");
            const status = document.createElement("p");
            const stop = document.createElement("button");
            const lines = document.createElement("ul");
            stop.type = "button";
            stop.className = "mcp-btn quiet";
            stop.textContent = result.dataset.mcpStop;
            stop.addEventListener("click", () => running?.abort());
            lines.className = "mcp-along";
            box.append(status, stop, lines);
            result.replaceChildren(box);
            const tick = () => (status.textContent = result.dataset.mcpRunning.replace("SECONDS", Math.floor((Date.now() - began) / 1000)));
            tick();
            stop.focus();
            return { lines, timer: setInterval(tick, 1000) };
        }
        function tell(text) {
            const note = document.createElement("p");
            note.className = "mcp-note warn";
            note.textContent = text;
            result.append(note);
        }
        function take(line, lines) {
            if (line.to === "begun") {
                form.elements.once.value = line.once;
            } else if (line.to === "along") {
                const item = document.createElement("li");
                item.textContent = line.text;
                lines.append(item);
            } else if (line.to === "result") {
                result.innerHTML = line.html;
                document.getElementById("mcp-result-title").focus();
            }
            return line.to === "result";
        }
        async function run(body) {
            if (running) return;
            running = new AbortController();
            const { lines, timer } = wait();
            let whole = false;
            // What was wrong with the run before.
            all(".errornote, [role=alert], [role=status]", form).forEach((each) => each.remove());
            all("[aria-invalid]", form).forEach((each) => each.removeAttribute("aria-invalid"));
            try {
                if (wasOver) await renew(form, body);
                const response = await fetch(location.href, { method: "POST", body, headers: { Accept: "application/x-ndjson, text/html" }, signal: running.signal });
                wasOver = isOver(response);
                if (response.headers.get("Content-Type")?.startsWith("application/x-ndjson")) {
                    await readLines(response, (line) => (whole = take(line, lines) || whole));
                } else {
                    // A page: what was typed cannot be tried like this, or the login is over.
                    const text = await response.text();
                    const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("[data-mcp-trying]");
                    if (wasOver) return tell(result.dataset.mcpOver);
                    if (!fresh) throw new Error(response.statusText);
                    whole = true;
                    if (!response.ok) return tell(fresh.querySelector("[role=alert]").textContent);
                    page.replaceWith(fresh);
                    trial(fresh);
                    fresh.querySelector("[data-mcp-focus]")?.focus();
                }
                if (!whole) tell(result.dataset.mcpBroke);
            } catch {
                tell(running.signal.aborted ? result.dataset.mcpStopped : result.dataset.mcpBroke);
            } finally {
                clearInterval(timer);
                result.querySelector("button[type=button]")?.remove();
                running = null;
            }
        }
        form.addEventListener("submit", (event) => {
            if (event.submitter?.name === "task" || form.elements.was_task) return;
            event.preventDefault();
            run(new FormData(form, event.submitter));
        });
        form.addEventListener("keydown", (event) => {
            if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
            event.preventDefault();
            form.requestSubmit(form.querySelector("input[type=submit]"));
        });
        result.addEventListener("keydown", (event) => {
            const answer = result.querySelector("button[value=accept]");
            const enters = event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey;
            if (event.key !== "Enter" || !answer || !enters || event.target.tagName === "BUTTON") return;
            event.preventDefault();
            form.requestSubmit(answer);
        });
    }

    /* Check: send probes, and let the server judge what came of them */
    const WHOLE = 8192;
    const HEADSTART = 500;
    const PROBE_TIME = 15000;
    const small = { "Content-Type": "application/json" };
    const probe = (plan, kind, { body = plan.ping, path = plan.path, ...more } = {}) =>
        sent(path, { method: "POST", body, headers: { ...plan.sent, ...small, [plan.header]: plan.tickets[kind] } }, more);
    async function sent(path, request, { begun = () => {}, time = PROBE_TIME } = {}) {
        const start = performance.now();
        const seconds = () => (performance.now() - start) / 1000;
        const seen = { status: 0, headers: {}, parts: [], seconds: 0 };
        const options = { ...request, redirect: "manual", credentials: "omit", cache: "no-store" };
        try {
            const response = await fetch(path, { ...options, signal: AbortSignal.timeout(time) });
            if (response.type === "opaqueredirect") return { ...seen, failure: "redirect", seconds: seconds() };
            seen.status = response.status;
            seen.headers = Object.fromEntries(response.headers);
            begun();
            const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
            let room = WHOLE;
            for (let part = await reader.read(); !part.done && room > 0; part = await reader.read()) {
                seen.parts.push([seconds(), part.value.slice(0, room)]);
                room -= part.value.length;
            }
            if (room <= 0) await reader.cancel();
        } catch (error) {
            seen.failure = error.name === "TimeoutError" ? "late" : seen.status ? "cut" : "unreachable";
        }
        begun();
        return { ...seen, seconds: seconds() };
    }
    async function sideBySide(plan) {
        let held;
        await Promise.race([
            new Promise((begun) => (held = probe(plan, "hold", { begun }))),
            new Promise((over) => setTimeout(over, HEADSTART)),
        ]);
        return { beside: await probe(plan, "body"), hold: await held };
    }
    async function look(plan, slow) {
        const answers = { ticks: await probe(plan, "ticks") };
        if (!answers.ticks.status) return answers;
        const path = plan.path.endsWith("/") ? plan.path.slice(0, -1) : `${plan.path}/`;
        answers.slash = await probe(plan, "body", { path });
        answers.refusal = await probe(plan, "refusal");
        answers.body = await probe(plan, "body", { body: "x".repeat(plan.body) });
        Object.assign(answers, await sideBySide(plan));
        if (plan.metadata) answers.metadata = await sent(plan.metadata, { method: "GET" });
        if (slow) answers.silence = await probe(plan, "silence", { time: plan.silence * 1000 + PROBE_TIME });
        return answers;
    }
    function check(section) {
        const plan = JSON.parse(section.dataset.mcpCheck);
        // What another origin does cannot be seen from here.
        if (plan.origin && new URL(plan.origin).origin !== location.origin) return;
        const asking = section.querySelector("[data-mcp-check-form]");
        const status = section.querySelector("[data-mcp-check-status]");
        const result = section.querySelector("[data-mcp-check-result]");
        const button = asking.querySelector("button");
        asking.hidden = false;
        result.replaceChildren();
        asking.addEventListener("submit", async (event) => {
            event.preventDefault();
            button.disabled = true;
            const slow = asking.elements.slow.checked;
            status.textContent = slow ? status.dataset.mcpSlowly : status.dataset.mcpLooking;
            try {
                const answers = await look(plan, slow);
                const response = await fetch(location.pathname, {
                    method: "POST",
                    headers: {
                        "Content-Type": "application/json",
                        "X-CSRFToken": asking.elements.csrfmiddlewaretoken.value,
                    },
                    body: JSON.stringify({ url: location.origin + plan.path, answers }),
                });
                // After a logout the server redirects to another page.
                if (!response.ok || response.redirected) throw new Error(response.statusText);
                result.innerHTML = await response.text();
                status.textContent = "";
            } catch {
                status.textContent = status.dataset.mcpFailed;
            }
            button.disabled = false;
        });
    }

    /* Show what a form leads to in place of one part, and leave the rest of the page */
    async function sendInPlace(event) {
        const asking = event.target;
        if (!asking.matches?.("[data-mcp-in-place]")) return;
        event.preventDefault();
        const { mcpInPlace: id } = asking.dataset;
        asking.querySelector("button").disabled = true;
        try {
            const response = await fetch(location.pathname, { method: "POST", body: new FormData(asking) });
            const page = new DOMParser().parseFromString(await response.text(), "text/html");
            const part = page.getElementById(id);
            if (!part || !response.ok || response.redirected) throw new Error(response.statusText);
            document.getElementById(id).replaceWith(part);
            part.querySelector("button").focus();
        } catch {
            // What a refusal, a login or a lost connection is, the browser shows best.
            asking.submit();
        }
    }

    /* Buttons that say how many rows are ticked, and a box that ticks all of them */
    function ticks(asking) {
        const boxes = all("[name=key]", asking);
        const every = asking.querySelector("[data-mcp-all]");
        const words = all("[data-mcp-ticked]", asking).map((button) => [button, button.textContent]);
        const tell = () => {
            const count = boxes.filter((box) => box.checked).length;
            words.forEach(([{ dataset }, none], at) => {
                const text = count === 1 ? dataset.mcpTickedOne : dataset.mcpTicked.replace("COUNT", count);
                words[at][0].textContent = count ? text : none;
            });
            if (every) every.checked = count > 0 && count === boxes.length;
        };
        if (every) every.hidden = !boxes.length;
        asking.addEventListener("change", (event) => {
            if (event.target === every) boxes.forEach((box) => (box.checked = every.checked));
            tell();
        });
        tell();
    }

    document.documentElement.classList.add("mcp-js");
    all("[data-mcp-ticks]").forEach(ticks);
    document.addEventListener("submit", sendInPlace);
    all("[data-mcp-trying]").forEach(trial);
    all("[data-mcp-live-bar]").forEach(live);
    all("[data-mcp-check]").forEach(check);
    dress(document);
    // The admin's own script focuses the first field: run after it.
    addEventListener("load", () => document.querySelector("[data-mcp-focus]")?.focus());
    if (!form) return;
    form.addEventListener("input", changed);
    form.addEventListener("change", async (event) => {
        const way = event.target.closest(".mcp-ways [name$='-as']");
        if (way) {
            // Show the current values in the chosen way.
            const name = way.name.replace(/-as$/, "");
            await draw(name, { [`show-${name}`]: way.value });
            const fresh = document.querySelector(`[data-mcp-sheet="${name}"]`);
            fresh.querySelector(".mcp-of-json").open = wayOf(fresh) === "json";
            start(fresh);
            if ([undefined, way.name].includes(document.activeElement.name)) fresh.querySelector("[name$='-as']:checked").focus();
        }
        // What can be chosen further depends on this.
        if (event.target.dataset.mcpRedraw) await redrawSheet(event.target);
        if (event.target.name === "function") {
            await draw("from_code");
            await draw("input_schema");
            await draw("arguments");
        }
    });
    // What django-jazzmin lays over lists tells of a choice through jQuery alone.
    addEventListener("load", () =>
        window.jQuery?.(form).on("select2:select", ({ target }) => target.dispatchEvent(new Event("change", { bubbles: true }))),
    );
    form.addEventListener("click", pressed);
    form.addEventListener("focusin", (event) => {
        const { target } = event;
        if (target.matches("textarea")) lastText = target;
        // A line that was closed has no list of texts yet.
        const line = target.hasAttribute("list") && !target.list && target.closest("details")?.querySelector("[name=show-line]");
        if (line) draw("config", { [line.name]: line.value });
    });
    let isLive = false;
    form.addEventListener("submit", async (event) => {
        if (isLive || !over) return void (dirty = false);
        event.preventDefault();
        const { submitter } = event;
        const body = new FormData();
        body.set("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
        try {
            const part = submitter?.offsetParent ? submitter.parentElement : form;
            if (isOver(await send(`${address()}?part=`, body, part))) return;
            // A line that is being removed is still in the form.
            while ([...waiting.values()].some((each) => each.length)) await new Promise((go) => setTimeout(go, PAUSE / 4));
        } catch {
            // What a lost connection is, the browser shows best.
        }
        isLive = true;
        form.requestSubmit(submitter);
        isLive = false;
    });
    // The browser puts back what was typed, which may be about other parts.
    addEventListener("pageshow", async () => {
        if (performance.getEntriesByType("navigation")[0]?.type !== "back_forward") return;
        dirty = true;
        for (const { dataset } of all("[data-mcp-sheet]")) await draw(dataset.mcpSheet);
        preview();
    });
    addEventListener("beforeunload", (event) => {
        if (dirty) event.preventDefault();
    });
})();
