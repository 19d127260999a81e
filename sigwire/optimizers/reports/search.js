
// --- trials of a search.
const report = data.report;
const trialRows = report.trials.map((trial, at) => ({ id: String(trial.number + 1), trial, diff: data.diffs[at], ...data.known[at] }));
const mostRows = Math.max(...trialRows.map(({ rows }) => rows || 0));
const winner = JSON.stringify([report.winner.texts || {}, report.winner.demos || {}, report.winner.lm_options || {}, report.winner.choices || {}]);
const isWinner = ({ candidate }) => JSON.stringify([candidate.texts || {}, candidate.demos || {}, candidate.lm_options || {}, candidate.choices || {}]) === winner;

function trialView() {
  const counted = (key, label, test) => ({ key, label: `${label} ${number(trialRows.filter(test).length)}`, test });
  const column = (key, label, value, digits) => ({ key, label, kind: "n", value, cell: (row) => digits === undefined ? number(value(row)) : fixed(value(row), digits) });
  const columns = [
    { key: "number", label: "trial", kind: "n", value: ({ trial }) => trial.number + 1 },
    column("mean", "score", ({ mean }) => mean, 3),
    column("rows", "rows", ({ rows }) => rows || null),
    { key: "candidate", label: "candidate", kind: "v", value: ({ name }) => name },
    column("calls", "calls until then", ({ trial }) => trial.spent?.calls),
    { key: "fate", label: "fate", kind: "v", value: ({ trial }) => trial.fate, cell: ({ trial }) => [isWinner(trial) ? element("span.tag.right", "✓ winner ") : "", short(trial.fate)] },
  ];
  const filters = [
    { key: "all", label: "all", test: () => true },
    counted("all-rows", "on all rows", ({ rows }) => rows && rows === mostRows),
    counted("dropped", "dropped", ({ rows, trial }) => trial.fate && rows !== mostRows),
  ];
  const searched = ({ id, name, trial: { origin, fate, candidate } }) => [id, name, origin, fate, candidate.texts, candidate.demos, candidate.lm_options, candidate.choices];
  return { rows: trialRows, columns, filters, searched, sort: "number", detail: trialDetail };
}
function trialDetail({ trial, diff }) {
  const texts = Object.entries(trial.candidate.texts || {});
  const demos = Object.entries(trial.candidate.demos || {});
  const options = Object.entries({ ...trial.candidate.lm_options, ...trial.candidate.choices });
  return [
    ...texts.flatMap(([slot, text]) => section(slot, element("div.diff", diff?.[slot] ? diff[slot].map(part) : whole(text)))),
    ...demos.flatMap(([name, found]) => section(`${count(found.length, "demo")} of ${name}`, found.map(demo))),
    ...section("options of the model", options.length ? element("pre", whole(Object.fromEntries(options))) : []),
    texts.length + demos.length + options.length ? "" : element("p.line", "as the student"),
    trial.fate ? element("p.line", trial.fate) : "",
  ];
}
function part([kind, before, after]) {
  return kind === "equal" ? element("span", after) : [before ? element("del", before) : "", after ? element("ins", after) : ""];
}
function demo({ data: { fields = {} } = {}, row }) {
  const shown = Object.fromEntries(Object.entries(fields).filter(([name]) => name !== "augmented"));
  const rows = Object.entries(shown).map(([name, value]) => element("tr", element("td.name", name), element("td", whole(value))));
  return folded(`${row || "demo"} · ${fields.augmented ? "a run" : "labels"}`, element("table", element("tbody", rows)));
}
start(trialView());
