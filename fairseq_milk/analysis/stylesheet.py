"""How the report looks: on a desk, on a telephone and in print."""

CSS = """
:root { color-scheme: light; }
body {
  max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif;
  color: #222; background: #fff; overflow-wrap: anywhere;
}
h1 { font-size: 1.6rem; font-weight: 600; line-height: 1.25; margin: 0.5rem 0 0.25rem; }
h2 { font-size: 1.2rem; font-weight: 600; margin: 3rem 0 0.75rem; padding-top: 0.75rem; border-top: 1px solid #ddd; }
h3 { font-size: 1rem; font-weight: 600; margin: 2rem 0 0.25rem; }
p { margin: 0.5rem 0; max-width: 42rem; }
.quiet { color: #666; font-size: 0.875rem; }
.warning { border-left: 3px solid #d55e00; padding-left: 0.75rem; }

.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.9rem 0.25rem 0; text-align: right; vertical-align: top; white-space: nowrap; }
th { font-weight: 600; border-bottom: 1px solid #999; }
td { border-bottom: 1px solid #eee; }
th.text, td.text { text-align: left; white-space: normal; min-width: 6rem; max-width: 22rem; }
td small { color: #777; font-size: 0.8rem; }

dl {
  display: grid; grid-template-columns: minmax(6rem, max-content) minmax(0, 1fr); gap: 0.15rem 1rem;
  margin: 0.5rem 0; font-size: 0.9375rem;
}
dt { color: #666; max-width: 11rem; }
dd { margin: 0; }
dd > p { margin: 0 0 0.5rem; max-width: none; }
code > span { display: inline-block; }
details { margin: 0.4rem 0; }
summary { cursor: pointer; font-size: 0.9375rem; }
code { font: 0.8125rem/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }

.side { display: flex; flex-wrap: wrap; gap: 0.5rem 1.5rem; align-items: flex-start; }
figure { margin: 0.75rem 0; min-width: 0; max-width: 100%; }
img { display: block; max-width: 100%; height: auto; }

@media (max-width: 40rem) {
  body { font-size: 15px; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: 0.4rem; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  h2, h3 { break-after: avoid; }
  figure, tr { break-inside: avoid; }
  .scroll { overflow: visible; }
  .scroll > img { min-width: 0 !important; }
  th, td { padding-right: 0.5rem; white-space: normal; }
}
"""
