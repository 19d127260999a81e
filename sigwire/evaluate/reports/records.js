
// --- records of one run, or of a baseline and another program.
const OUTCOMES = { right: "✓ right", wrong: "✗ wrong", failed: "! failed", unscored: "— not scored" };
const RUN_FIELDS = ["steps", "history", "termination_reason"];
const isRun = data.kind === "run";
let pair = 1; // the index of the program that is compared with the baseline
let metric = data.metrics[0];

function outcome(record) {
  if (!record) return "unscored";
  if (record.failure) return record.failure.kind === "program" ? "failed" : "unscored";
  const score = scoreOf(record);
  return typeof score !== "number" ? "unscored" : score >= 1 ? "right" : "wrong";
}
// Return the score by the chosen metric; a failure counts in each as in the first.
function scoreOf(record) {
  return record.failure || metric === data.first_metric ? record.score : record.subscores?.[metric];
}
// Return the fields of an agent's run ({steps, history, termination_reason}), or null.
function runOf(record) {
  const outputs = record.outputs || {};
  const name = (field) => "run_" + field in outputs ? "run_" + field : field;
  if (!Array.isArray(outputs[name("steps")]) || !outputs[name("history")]) return null;
  return Object.fromEntries(RUN_FIELDS.map((field) => [field, outputs[name(field)]]));
}
function answers(record) {
  const outputs = record?.outputs || {};
  if (!record || !runOf(record)) return outputs;
  const prefixed = "run_steps" in outputs;
  return Object.fromEntries(Object.entries(outputs).filter(([name]) => !RUN_FIELDS.some((field) => name === (prefixed ? "run_" : "") + field)));
}
const brief = (fields) => {
  const pairs = Object.entries(fields || {});
  return pairs.length === 1 ? short(pairs[0][1]) : short(pairs.map(([name, value]) => `${name}: ${short(value, 80)}`).join(" · "));
};
const tokens = (record, name) => Object.values(record.usage || {}).reduce((sum, usage) => sum + (usage[name] || 0), 0);
const tag = (name) => element("span.tag." + name, OUTCOMES[name]);
const isEqual = (a, b) => JSON.stringify(a) === JSON.stringify(b);

// Labels that an output of some record has too are expected outputs; without such labels, all but the id of the example.
// Other labels are further fields of the example.
const records = data.runs.flatMap((run) => run.records);
const outputNames = new Set(records.flatMap((record) => Object.keys(answers(record))));
const labelNames = new Set(records.flatMap((record) => Object.keys(record.labels || {})));
const compared = new Set([...labelNames].filter((name) => outputNames.has(name)));
const expectedNames = compared.size ? compared : new Set([...labelNames].filter((name) => name !== "id"));
const picked = (fields, test) => Object.fromEntries(Object.entries(fields || {}).filter(([name]) => test(name)));
const expected = (record) => picked(record.labels, (name) => expectedNames.has(name));
const further = (record) => picked(record.labels, (name) => !expectedNames.has(name));

function rowId(record) {
  return record.id + (record.repeat > 1 ? "." + record.repeat : "");
}
function recordRows() {
  const [first, second] = [data.runs[0], data.runs[isRun ? 0 : pair]];
  if (isRun) return first.records.map((record) => ({ id: rowId(record), data: record, a: record, b: null }));
  const others = repeats(second.records);
  return [...repeats(first.records)].filter(([id]) => others.has(id)).map(([id, all]) => {
    const [x, y] = [first.values[metric][id], second.values[metric][id]];
    const isScored = typeof x === "number" && typeof y === "number";
    const [a, b] = [all[0], others.get(id)[0]];
    return { id, data: [all, others.get(id)], a, b, all, others: others.get(id), x, y, change: isScored ? y - x : null };
  });
}
// Return the records of each example, by its id.
function repeats(records) {
  const found = new Map();
  for (const record of records) found.set(record.id, [...(found.get(record.id) || []), record]);
  return found;
}

// --- columns and filters
function recordView() {
  const rows = recordRows();
  const counted = (key, label, test) => ({ key, label: `${label} ${number(rows.filter(test).length)}`, test });
  const filters = [
    { key: "all", label: "all", test: () => true },
    ...(isRun ? [] : [counted("regressions", "lost", (row) => row.change < 0), counted("wins", "won", (row) => row.change > 0)]),
    ...["wrong", "failed", "unscored", "right"].map((key) => counted(key, OUTCOMES[key].slice(2), (row) => rowOutcome(row) === key)),
  ];
  const base = [
    { key: "index", label: "#", kind: "n", value: (row) => row.a.index },
    { key: "id", label: "id", kind: "id", value: (row) => row.id, cell: (row) => short(row.id, 60) },
  ];
  const columns = isRun ? [...base, ...runColumns(rows)] : [...base, ...pairColumns()];
  return { rows, columns, filters, whose: isRun ? "" : data.runs[pair].name, searched: seen, sort: isRun ? "outcome" : "change", detail: isRun ? runDetail : pairDetail };
}
// Return what a person reads of a row; durations, tokens and costs are no words to search for.
function seen({ id, a, all, others }) {
  const of = (record) => [
    record.inputs, record.labels, answers(record), record.feedback, record.feedbacks,
    record.failure && [record.failure.type, record.failure.kind, record.failure.path, record.failure.message],
    (runOf(record)?.steps ?? record.steps ?? []).map(({ thought, calls, results, error }) => [
      thought, error, (calls || []).map((call) => [call.name, call.arguments]), (results || []).map(({ content }) => content),
    ]),
    runOf(record)?.termination_reason,
    (record.calls || []).map(({ messages, choices, error }) => [error, [...(messages || []), ...(choices || [])].map(({ parts }) => (parts || []).map(partValues))]),
  ];
  return [id, (all ? [...all, ...(others || [])] : [a]).map(of)];
}
const partValues = ({ text, name, arguments: given, content }) => [text, name, given, content?.sha256 ? "" : content];
function rowOutcome({ a, b, y, others }) {
  if (isRun || others.length === 1) return outcome(b || a);
  return typeof y !== "number" ? "unscored" : y >= 1 ? "right" : "wrong";
}
const RANK = { failed: 0, unscored: 1, wrong: 2, right: 3 };
function runColumns(rows) {
  const names = [...new Set(rows.flatMap(({ a }) => Object.keys(a.subscores || {})))].filter((name) => name !== metric && name !== data.first_metric);
  const has = (test) => rows.some(({ a }) => test(a));
  const score = (key, label, value) => ({ key, label, kind: "n", value, cell: (row) => fixed(value(row), Number.isInteger(value(row)) ? 0 : 3) });
  return [
    { key: "outcome", label: "outcome", value: ({ a }) => RANK[outcome(a)], cell: ({ a }) => tag(outcome(a)) },
    score("score", metric, ({ a }) => scoreOf(a)),
    ...(metric === data.first_metric ? [] : [score("score.first", data.first_metric, ({ a }) => a.score)]),
    ...names.slice(0, 4).map((name) => score("score." + name, name, ({ a }) => a.subscores?.[name])),
    { key: "inputs", label: "inputs", kind: "v", value: ({ a }) => brief(a.inputs) },
    ...(expectedNames.size ? [{ key: "labels", label: "expected", kind: "v", value: ({ a }) => brief(expected(a)) }] : []),
    { key: "outputs", label: "outputs", kind: "v", value: ({ a }) => a.failure ? `${a.failure.type}: ${a.failure.message}` : brief(answers(a)) },
    { key: "seconds", label: "time", kind: "n", value: ({ a }) => a.seconds ?? 0, cell: ({ a }) => duration(a.seconds ?? 0) },
    ...(has((a) => tokens(a, "input_tokens")) ? [{ key: "tokens", label: "tokens", kind: "n", value: ({ a }) => tokens(a, "input_tokens") + tokens(a, "output_tokens"), cell: ({ a }) => number(tokens(a, "input_tokens") + tokens(a, "output_tokens")) }] : []),
    ...(has((a) => a.cost || a.known_cost) ? [{ key: "cost", label: "$ per 1,000", kind: "n", value: ({ a }) => a.cost, cell: ({ a }) => typeof a.cost === "number" ? money(1000 * a.cost) : a.known_cost ? `≥ ${money(1000 * a.known_cost)}` : "unknown" }] : []),
  ];
}
function pairColumns() {
  const names = [data.runs[0].name, data.runs[pair].name];
  const shown = ({ x, y, change }) => change === null ? "—" : `${fixed(x, 2)} → ${fixed(y, 2)}`;
  const word = ({ change }) => change === null ? "unscored" : change < 0 ? "wrong" : change > 0 ? "right" : "unscored";
  const mark = (row) => row.change === null ? "— not compared" : row.change < 0 ? "▼ lost" : row.change > 0 ? "▲ won" : "= same";
  return [
    { key: "change", label: "change", value: ({ change }) => change, cell: (row) => element("span.tag." + word(row), mark(row)) },
    { key: "score", label: metric, kind: "n", value: ({ y }) => y, cell: shown },
    { key: "inputs", label: "inputs", kind: "v", value: ({ a }) => brief(a.inputs) },
    { key: "labels", label: "expected", kind: "v", value: ({ a }) => brief(expected(a)) },
    { key: "a", label: short(names[0], 30), kind: "v", value: ({ a }) => a.failure ? a.failure.type : brief(answers(a)) },
    { key: "b", label: short(names[1], 30), kind: "v", value: ({ b }) => b.failure ? b.failure.type : brief(answers(b)) },
  ];
}

// --- one example
function runDetail({ a }) {
  return [
    ...section("inputs", fieldTable(a.inputs)),
    ...section("expected and given", answerTable(expected(a), [["outputs", a]])),
    ...section("further fields of the example", fieldTable(further(a))),
    ...process(a),
  ];
}
function pairDetail({ a, all, others }) {
  const names = [data.runs[0].name, data.runs[pair].name];
  return [
    ...section("inputs", fieldTable(a.inputs)),
    ...section("further fields of the example", fieldTable(further(a))),
    ...all.flatMap((record, at) => {
      const given = [[names[0], record], [names[1], others[at]]].filter(([, each]) => each);
      const title = all.length > 1 ? `repeat ${record.repeat}: expected and given` : "expected and given";
      return [
        ...section(title, answerTable(expected(a), given)),
        element("div.side", given.map(([name, each]) => element("div", element("h3", name), process(each)))),
      ];
    }),
  ];
}
function fieldTable(fields) {
  const rows = Object.entries(fields || {});
  return rows.length ? element("table", element("tbody", rows.map(([name, value]) => element("tr", element("td.name", name), element("td", whole(value)))))) : [];
}
// Return labels beside the outputs of records; an output that differs from its label is marked.
function answerTable(labels, given) {
  const names = [...new Set([...Object.keys(labels || {}), ...given.flatMap(([, record]) => Object.keys(answers(record)))])];
  if (!names.length) return [];
  const head = element("tr", ["", "expected", ...given.map(([label]) => label)].map((label) => element("th", label)));
  const cell = (name, record) => {
    const found = answers(record);
    if (!(name in found)) return element("td", record.failure ? element("small", "failed") : compared.has(name) ? element("small", "none") : "");
    if (!(name in (labels || {}))) return element("td", whole(found[name]));
    const same = isEqual(found[name], labels[name]);
    return element(same ? "td.equal" : "td.differs", same ? "" : element("span.bad-mark", "≠ "), whole(found[name]));
  };
  const named = (label, made) => withAttributes(made, { "data-label": label });
  const rows = names.map((name) => element("tr", element("td.name", name),
    named("expected", element("td", name in (labels || {}) ? whole(labels[name]) : "")),
    given.map(([label, record]) => named(label, cell(name, record)))));
  return element("table", element("thead", head), element("tbody", rows));
}
// Return how a record came about: error, feedback, turns, calls of predictors, cost.
function process(record) {
  const run = runOf(record), steps = run?.steps ?? record.steps ?? [];
  return [
    ...(record.failure ? section("error", errorBox(record.failure)) : []),
    ...(record.feedback ? section("feedback", element("div.thought", whole(record.feedback))) : []),
    ...section("turns", steps.length ? element("ol.turns", steps.map(turn)) : []),
    ...section("messages sent and received", messages(record)),
    ...section("calls of predictors", (record.trace || []).map(traced)),
    ...(record.repairs || []).length ? section("repairs", fieldTable(Object.fromEntries(record.repairs.map((each, at) => [each.field || `answer ${at + 1}`, each.what])))) : [],
    ...(record.attempts || []).length ? section("attempts", attemptTable(record.attempts)) : [],
    element("p.line", ledger(record, run).join(" · ")),
    ...(run?.history && !(record.calls || []).length ? [folded("conversation", element("pre", whole(run.history)))] : []),
  ];
}
function errorBox(failure) {
  const where = [failure.path && `at ${failure.path}`, failure.turn && `turn ${failure.turn}`].filter(Boolean).join(", ");
  return element("div.error", element("b", failure.type), ` (${failure.kind}${where ? "; " + where : ""}) `, element("div.thought", whole(failure.message)),
    failure.traceback ? folded("traceback", element("pre", whole(failure.traceback))) : "");
}
function turn(step, at) {
  const usage = step.usage || {};
  const facts = [`turn ${at + 1}`, duration(step.seconds || 0), usage.input_tokens ? `${number(usage.input_tokens)} in, ${number(usage.output_tokens || 0)} out` : ""];
  const results = new Map((step.results || []).map((result) => [result.id, result]));
  return element("li", element("small", facts.filter(Boolean).join(" · ")),
    step.thought ? element("div.thought", whole(step.thought)) : "",
    step.error ? element("div.error", whole(step.error)) : "",
    (step.calls || []).map((call) => callBox(call, results.get(call.id))),
    (step.warnings || []).map((warning) => element("div.line", "⚠ ", warning.detail)));
}
function callBox(call, result) {
  const args = call.arguments ? Object.entries(call.arguments).map(([name, value]) => `${name}=${short(JSON.stringify(value), 300)}`).join(", ") : short(call.raw_arguments || "", 300);
  const isBad = Boolean(result?.is_error || call.error);
  return element(isBad ? "div.call.bad" : "div.call", element("code", element("b", call.name), `(${args})`),
    result ? element("div.result", isBad ? "✗ " : "→ ", whole(result.content ?? "")) : "");
}
// Return the calls of models of a record, each folded: its messages, the answer last.
function messages(record) {
  const calls = record.calls || [];
  if (!calls.length) return record.requests ? [element("p.line", "They are not recorded. Evaluate(requests=True) keeps those of every row, and by default those of failed rows are kept.")] : [];
  return calls.map((call, at) => {
    const { messages: all, tools } = wholeCall(calls, at);
    const ends = (call.choices || []).map(({ finish_reason: reason }) => reason).join(", ");
    const facts = [`call ${at + 1}`, call.path, call.model, count(all.length, "message"), call.is_hit ? "cache hit" : "", call.error ? "failed" : ends, call.is_cut ? "texts are cut" : ""];
    return foldedLater(facts.filter(Boolean).join(" · "), () => [
      ...(tools.length ? [folded(count(tools.length, "tool"), element("pre", whole(tools)))] : []),
      ...all.map((message) => messageBox(message)),
      ...(call.choices || []).map((choice) => messageBox(choice, "answer")),
      call.error ? element("div.error", whole(call.error)) : "",
    ]);
  });
}
// Return a call with the messages and tools that it shares with an earlier one.
function wholeCall(calls, at) {
  const { messages: own = [], tools = [], like = null, shared = 0 } = calls[at];
  if (like === null || like >= at) return { messages: own, tools };
  const earlier = wholeCall(calls, like);
  return { messages: [...earlier.messages.slice(0, shared), ...own], tools: earlier.tools };
}
function messageBox({ role, parts = [], finish_reason: reason, refusal }, kind = "") {
  return element("div.message", element("small", [kind, role, reason].filter(Boolean).join(" · ")), parts.map(partBox), refusal ? element("div.error", whole(refusal)) : "");
}
function partBox(part) {
  if (part.type === "tool_call") return callBox(part);
  if (part.type === "tool_result") return element(part.is_error ? "div.call.bad" : "div.call", element("code", element("b", part.name)), element("div.result", part.is_error ? "✗ " : "→ ", whole(part.content ?? "")), (part.media || []).map(partBox));
  if (part.type === "text") return element("div.thought", whole(part.text));
  if (part.type === "thinking") return folded("thinking", element("div.thought", whole(part.text || "")));
  return element("code", [part.type, part.media_type, part.content && `${number(part.content.bytes)} bytes`, part.content && `sha256 ${part.content.sha256}`, part.url].filter(Boolean).join(" · "));
}
function traced({ path, demo }) {
  const fields = Object.fromEntries(Object.entries(demo.fields || demo).filter(([name]) => name !== "augmented"));
  return folded(path || "predictor", fieldTable(fields));
}
function attemptTable(attempts) {
  const names = ["purpose", "model", "error", "status", "seconds", "waited", "why"].filter((name) => attempts.some((each) => each[name] !== undefined && each[name] !== null));
  const rows = attempts.map((each) => element("tr", names.map((name) => element("td", ["seconds", "waited"].includes(name) && typeof each[name] === "number" ? duration(each[name]) : short(each[name])))));
  return element("table", element("thead", element("tr", names.map((name) => element("th", name)))), element("tbody", rows));
}
function ledger(record, run) {
  const models = Object.entries(record.usage || {}).map(([model, usage]) => `${model}: ${number(usage.input_tokens || 0)} in, ${number(usage.output_tokens || 0)} out`
    + (usage.cached_tokens ? `, ${number(usage.cached_tokens)} cached` : "") + (usage.reasoning_tokens ? `, ${number(usage.reasoning_tokens)} for reasoning` : ""));
  return [
    duration(record.seconds || 0), ...models, count(record.requests || 0, "request"), record.hits ? count(record.hits, "cache hit") : "",
    typeof record.cost === "number" ? money(record.cost)
      : record.known_cost ? `≥ ${money(record.known_cost)}` : record.requests ? "cost unknown" : "",
    run?.termination_reason ? `ended by ${run.termination_reason}` : "", record.repeat > 1 || data.repeat > 1 ? `repeat ${record.repeat}` : "", record.started || "",
  ].filter(Boolean);
}

// --- the metric and the program that is compared, if there are several
function choices() {
  return [
    ...choice("Metric", data.metrics, metric, (name) => { metric = name; }),
    ...(isRun ? [] : choice("Compared program", data.runs.slice(1).map((run) => run.name), data.runs[pair].name, (_, at) => { pair = at + 1; })),
  ];
}
// Return a list of names to choose from, if there are two or more. `pick` gets the name and its index.
function choice(label, names, chosen, pick) {
  if (names.length < 2) return [];
  const made = withAttributes(element("select", names.map((name, at) => withAttributes(element("option", name), { value: at }))), { "aria-label": label });
  made.value = names.indexOf(chosen);
  made.addEventListener("change", () => { pick(names[made.value], Number(made.value)); writeState(); restart(); });
  return [made];
}
function restart() {
  document.getElementById("rows").replaceChildren();
  startRecords();
}
function startRecords() {
  const chosen = new URLSearchParams(location.hash.slice(1));
  pair = isRun ? 0 : Math.max(data.runs.findIndex((run) => run.name === chosen.get("with")), 1);
  metric = data.metrics.includes(chosen.get("metric")) ? chosen.get("metric") : data.metrics[0];
  start({
    ...recordView(),
    tools: choices,
    writeState: (made) => {
      if (pair > 1) made.set("with", data.runs[pair].name);
      if (metric !== data.metrics[0]) made.set("metric", metric);
    },
  });
}
startRecords();
