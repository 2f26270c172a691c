/* Draws the numbers of an answer as bars, if each row has one name to compare them by. */
window.mcpChart = (names, rows) => {
  "use strict";
  const { areNumbers, find, isKey, make, textOf } = mcpAnswer;
  const [label, ...others] = names.filter((name) => !areNumbers(name));
  const numbers = names.filter((name) => areNumbers(name) && !isKey(name));
  const isCount = (name) => rows.every((row) => Number.isInteger(row[name]));
  const number = numbers.find((name) => !isCount(name)) ?? numbers[0];
  const values = rows.map((row) => Number(row[number] ?? 0));
  const labels = rows.map((row) => row[label]).filter((each) => !Array.isArray(each));
  const isNamed = !others.length && new Set(labels.map((each) => textOf(each))).size === rows.length;
  const isChart = isNamed && number && rows.length > 1 && values.every((each) => each >= 0);
  const top = Math.max(...values) || 1;
  const [figure, details, summary] = ["figure", "details", "summary"].map(find);
  if (summary.hidden === !!isChart) details.open = !isChart;
  figure.hidden = summary.hidden = !isChart;
  find("figcaption").textContent = `${number}, ${label}`;
  const spanOf = (row, name) => make("span", { textContent: textOf(row[name], name) });
  const barOf = (row, at) => {
    const bar = make("i", {});
    bar.style.width = `${(100 * values[at]) / top}%`;
    return make("li", {}, spanOf(row, label), bar, spanOf(row, number));
  };
  find("ol").replaceChildren(...(isChart ? rows.map(barOf) : []));
};
