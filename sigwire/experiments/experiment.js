
// --- points of an experiment.
const pointRows = data.rows.map((row, at) => ({ id: String(at + 1), row, links: data.links[at] || {} }));

function pointView() {
  const column = (key, label, digits) => ({ key, label, kind: "n", value: ({ row }) => row[key], cell: ({ row }) => digits === undefined ? number(row[key]) : fixed(row[key], digits) });
  const columns = [
    ...data.axes.map((axis) => ({ key: axis, label: axis, value: ({ row }) => row[axis] })),
    column("seed", "seed"),
    column("score", data.metrics[0], 3),
    { key: "low", label: "interval", kind: "n", value: ({ row }) => row.low, cell: ({ row }) => typeof row.low === "number" ? `${fixed(row.low, 3)} … ${fixed(row.high, 3)}` : "" },
    column("scored", "scored"),
    column("failed", "failed"),
    column("calls", "calls"),
    { ...column("cost", "cost"), cell: ({ row }) => money(row.cost) },
    { ...column("search_calls", "search calls"), cell: ({ row }) => number(row.search_calls || undefined) },
    { key: "pages", label: "pages", value: ({ links }) => Object.keys(links).join(" "), cell: pageLinks },
  ];
  const failed = pointRows.filter(({ row }) => row.failed).length;
  const filters = [
    { key: "all", label: "all", test: () => true },
    { key: "failed", label: `with failures ${number(failed)}`, test: ({ row }) => row.failed },
  ];
  const searched = ({ row }) => data.axes.map((axis) => row[axis]).concat(row.seed);
  return { rows: pointRows, columns, filters, searched, sort: "", detail: pointDetail };
}
// Return links to the pages of a point, whose addresses the page's writer made: letters, digits and hyphens.
function pageLinks({ links }) {
  return Object.entries(links).flatMap(([kind, address]) => [withAttributes(element("a", kind), { href: address }), " "]);
}
function pointDetail({ row }) {
  const lines = Object.entries(row).map(([name, value]) => element("tr", element("td.name", name), element("td", whole(value))));
  return element("table", element("tbody", lines));
}
start(pointView());
