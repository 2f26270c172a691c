/* Shows an answer of a tool as a table; the rules are those of `admin/page/result.py`. */
const mcpAnswer = (() => {
  "use strict";
  const find = (selector) => document.querySelector(selector);
  const [table, more, refresh, alert] = ["table", "#more", "#refresh", "p"].map(find);
  const [words, status] = [document.body.dataset, find("[role=status]")];
  let [rows, next, by, isDown, isBusy] = [[], null, null, false, false];

  const isKey = (name) => /(^|[_.])(pk|id|key)$/.test(name);
  const isNothing = (value) => [undefined, null, ""].includes(value);
  const isObject = (value) => value instanceof Object && !Array.isArray(value);
  const isNumber = (value) =>
    typeof value === "number" ||
    (typeof value === "string" && /^-?\d{1,30}\.\d{1,20}$/.test(value));
  const areNumbers = (name) =>
    rows.every((row) => isNumber(row[name] ?? 0)) && rows.some((row) => isNumber(row[name]));

  /** Return the nearest list of objects, if there is one, and what stands beside it. */
  function findRows(value, depth = 0) {
    if (Array.isArray(value) && value.every(isObject)) return [value, {}];
    const members = isObject(value) && depth < 4 ? value : {};
    const [names, isOther] = [Object.keys(members), (name) => !Array.isArray(members[name])];
    for (const name of names.toSorted((one, other) => isOther(one) - isOther(other))) {
      const [found, beside] = findRows(members[name], depth + 1);
      const { [name]: _found, ...others } = members;
      if (found?.length || (found && name === names[0])) return [found, { ...others, ...beside }];
    }
    return [null, members];
  }

  function format(value, name) {
    const { locale } = mcpApp.host;
    const minimumFractionDigits = `${value}`.split(".")[1]?.length || 0;
    const digits = { minimumFractionDigits, maximumFractionDigits: 20 };
    const number = { ...digits, useGrouping: !isKey(name) && !Number.isInteger(value) };
    if (isNumber(value)) return new Intl.NumberFormat(locale, number).format(value);
    const [, unit] = /(?:^|_)(month|quarter|year)$/.exec(name) || [];
    const month = { year: "numeric", month: unit === "year" ? undefined : "short", timeZone: "UTC" };
    const time = { dateStyle: "medium", timeStyle: "short" };
    const isFirst = unit && /^\d{4}-\d\d-01$/.test(value);
    if (!isFirst && !/^\d{4}-\d\d-\d\dT\d\d:/.test(value)) return value;
    return new Intl.DateTimeFormat(locale, isFirst ? month : time).format(new Date(value));
  }

  const memberText = ([name, value]) => `${name}: ${textOf(value, name)}`;

  function textOf(value, name = "") {
    if (typeof value === "boolean") return value ? words.yes : words.no;
    if (Array.isArray(value)) return value.map((each) => textOf(each)).join(", ") || "–";
    if (typeof value?.text === "string") return value.text;
    if (isObject(value)) return Object.entries(value).map(memberText).join("; ");
    try {
      return isNothing(value) ? "–" : format(value, name);
    } catch {
      return value; // It is no date, or the host names no language.
    }
  }

  function compare(one, other) {
    const [a, b] = [one[by], other[by]];
    if (isNothing(a) || isNothing(b)) return isNothing(a) - isNothing(b);
    const asTexts = () => `${a}`.localeCompare(b, undefined, { numeric: true });
    return (areNumbers(by) ? a - b : asTexts()) * (isDown ? -1 : 1);
  }

  function make(tag, values, ...inner) {
    const element = Object.assign(document.createElement(tag), values);
    element.append(...inner);
    return element;
  }

  function sortBy(name) {
    [by, isDown] = [name, by === name && !isDown];
    draw();
    find("[aria-sort$=ending] button").focus();
  }

  function draw() {
    const { name: tool, title } = mcpApp.host.toolInfo?.tool || {};
    const names = [...new Set(rows.flatMap(Object.keys))];
    const looks = names.map((name) => (areNumbers(name) ? "number" : ""));
    const heads = names.map((name, at) => {
      const ariaSort = name !== by ? "none" : isDown ? "descending" : "ascending";
      const button = make("button", { textContent: name, onclick: () => sortBy(name) });
      return make("th", { ariaSort, className: looks[at] }, button);
    });
    const cellsOf = (row) => names.map((name, at) =>
      make("td", { textContent: textOf(row[name], name), className: looks[at] }));
    const sorted = names.includes(by) ? rows.toSorted(compare) : rows;
    table.tHead.rows[0].replaceChildren(...heads);
    table.tBodies[0].replaceChildren(...sorted.map((row) => make("tr", {}, ...cellsOf(row))));
    find("h1").textContent = table.ariaLabel = title || tool || document.title;
    [refresh.hidden, more.hidden, table.hidden] = [!tool, !tool || !next, !rows.length];
    window.mcpChart?.(names, rows);
  }

  function show(result, before = []) {
    const [found, beside] = findRows(result.isError ? {} : result.structuredContent);
    const facts = Object.entries(beside).filter(([name, value]) => name !== "next" && value !== null);
    [rows, next] = [[...before, ...(found || [])], beside.next];
    const isText = !found && facts.length < 2;
    find("pre").textContent = isText ? mcpApp.textOf(result) : facts.map(memberText).join("\n");
    status.textContent = found ? `${words.rows} ${rows.length}` : "";
    draw();
  }

  async function ask(values, before) {
    if (isBusy) return;
    [isBusy, alert.textContent] = [true, ""];
    const call = mcpApp.call(mcpApp.host.toolInfo.tool.name, { ...mcpApp.input, ...values });
    const tell = (error) => (alert.textContent = `${words.failed} ${error.message}`);
    await call.then((result) => show(result, before)).catch(tell);
    isBusy = false;
    if (before && more.hidden) refresh.focus();
  }

  refresh.onclick = () => ask({});
  more.onclick = () => ask({ cursor: next }, rows);
  mcpApp.onhost = draw;
  mcpApp.onresult = (result) => show(result);
  mcpApp.oncancel = () => (status.textContent = words.cancelled);
  return { areNumbers, find, isKey, make, textOf };
})();
