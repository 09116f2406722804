/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the page looks, in the light and in the dark, on a phone and on a desk.
 */
#include "bench/report_parts.h"

/* The policy forbids whatever would come from elsewhere. */
static const char head[] =
	"<!doctype html>\n"
	"<html lang=\"en\">\n"
	"<head>\n"
	"<meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	"style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<meta name=\"color-scheme\" content=\"light dark\">\n"
	"<title>ringside bench</title>\n";

/* Colours that people who do not see red or green as others do can tell apart, each with at least
 * 3:1 of contrast to the page. */
static const char colours[] =
	":root{color-scheme:light dark;--page:#fff;--ink:#1c1f23;--soft:#59616b;--rule:#dfe3e8;"
	"--box:#f6f7f9;--c0:#0072b2;--c1:#c8500a;--c2:#117a56;--c3:#a03c8c;--c4:#846400;"
	"--c5:#4d4d4d;--c6:#2a8fc0;--c7:#882255;--part0:#0072b2;--part1:#e69f00}\n"
	"@media(prefers-color-scheme:dark){:root{--page:#14171a;--ink:#e8eaed;--soft:#a3abb5;"
	"--rule:#333a42;--box:#1c2025;--c0:#56b4e9;--c1:#f58f45;--c2:#3cc796;--c3:#e08bd0;"
	"--c4:#ecd944;--c5:#c4c4c4;--c6:#8fd0ff;--c7:#ff9db0;--part0:#56b4e9;--part1:#e69f00}}\n";

static const char layout[] =
	"*{box-sizing:border-box}\n"
	"body{margin:0 auto;padding:10px;max-width:1180px;background:var(--page);"
	"color:var(--ink);font:16px/1.45 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',"
	"sans-serif}\n"
	"h1{font-size:1.5rem;margin:0 0 4px}h2{font-size:1.1rem;margin:0}\n"
	"section{margin:0 0 20px}section>h2{margin-bottom:4px}p{margin:4px 0 10px}\n"
	"pre{margin:0;padding:10px;background:var(--box);border-radius:6px;font-size:.85rem;"
	"white-space:pre-wrap;overflow-wrap:anywhere}\n"
	".machine,.subject,.meaning,i{color:var(--soft);font-style:normal}\n"
	".machine,.subject,.legend,ol{overflow-wrap:anywhere}\n"
	".subject{font-size:.9rem;margin:0 0 6px}.meaning{font-size:.9rem;margin:8px 0 0}\n"
	".plots{display:grid;grid-template-columns:minmax(0,1fr);gap:12px;align-items:start;margin:16px 0}\n"
	".box{background:var(--box);border-radius:8px;padding:8px;margin:0}\n"
	"summary{cursor:pointer;padding:6px 0}\n"
	"@media(min-width:440px){body{padding:16px}.box{padding:14px}.plots{gap:16px}}\n"
	"@media(min-width:800px){.plots{grid-template-columns:repeat(2,minmax(0,1fr))}}\n";

static const char plots[] =
	"svg.plot{display:block;width:100%;height:auto;max-width:560px}\n"
	"svg.plot text{font-size:14px;fill:var(--soft)}svg.plot text.label{fill:var(--ink)}\n"
	"@media(min-width:440px){svg.plot text{font-size:11.5px}}\n"
	"svg .start{text-anchor:start}svg .middle{text-anchor:middle}svg .end{text-anchor:end}\n"
	".rule{stroke:var(--rule);stroke-width:1}.line{fill:none;stroke-width:2;"
	"stroke-linejoin:round}.line.dash{stroke-dasharray:6 3}.tip{fill:transparent}\n"
	"svg.plot text.letter{font-weight:700}\n"
	".part0{fill:var(--part0)}.part1{fill:var(--part1)}\n"
	".legend{list-style:none;margin:6px 0 0;padding:0;font-size:.9rem}\n"
	".legend li{display:flex;gap:8px;margin:3px 0;line-height:1.3}"
	".legend i{display:inline-block;margin-left:.4em}\n"
	"svg.key{width:30px;height:12px;flex:none;margin-top:.32rem}\n"
	".scroll{overflow-x:auto;border:1px solid var(--rule);border-radius:6px}\n"
	"table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}\n"
	"th,td{padding:5px 9px;text-align:right;white-space:nowrap;"
	"border-bottom:1px solid var(--rule)}tbody tr:last-child>*{border-bottom:0}\n"
	"th:first-child{text-align:left}thead th{color:var(--soft);font-weight:600;"
	"vertical-align:bottom;white-space:normal}tbody th{font-weight:400;white-space:normal;min-width:130px;"
	"overflow-wrap:anywhere}\n"
	"@media(min-width:800px){tbody th{min-width:240px}}\n"
	"#tip{position:fixed;display:none;max-width:300px;padding:5px 8px;border-radius:5px;"
	"background:var(--ink);color:var(--page);font-size:.85rem;pointer-events:none;"
	"overflow-wrap:anywhere;z-index:1}\n";

static const char script[] =
	"<div id=\"tip\" role=\"status\"></div>\n"
	"<script>\n"
	"(function () {\n"
	"  var tip = document.getElementById('tip');\n"
	"  function show(e) {\n"
	"    var at = e.target.closest ? e.target.closest('[data-tip]') : null;\n"
	"    if (!at) { tip.style.display = 'none'; return; }\n"
	"    tip.textContent = at.getAttribute('data-tip');\n"
	"    tip.style.display = 'block';\n"
	"    tip.style.left = Math.max(4, Math.min(e.clientX + 12,\n"
	"      document.documentElement.clientWidth - tip.offsetWidth - 4)) + 'px';\n"
	"    tip.style.top = (e.clientY > tip.offsetHeight + 20\n"
	"      ? e.clientY - tip.offsetHeight - 12 : e.clientY + 20) + 'px';\n"
	"  }\n"
	"  document.addEventListener('pointermove', show);\n"
	"  document.addEventListener('pointerdown', show);\n"
	"})();\n"
	"</script>\n";

void report_write_head(FILE *f)
{
	fputs(head, f);
	fputs("<style>\n", f);
	fputs(colours, f);
	fputs(layout, f);
	fputs(plots, f);
	for (unsigned i = 0; i < 8; i++)
		fprintf(f,
			".line.c%u{stroke:var(--c%u)}.mark.c%u{fill:var(--c%u)}"
			"b.c%u{color:var(--c%u)}svg.plot text.letter.c%u{fill:var(--c%u)}\n",
			i, i, i, i, i, i, i, i);
	fputs("</style>\n</head>\n<body>\n", f);
}

void report_write_script(FILE *f)
{
	fputs(script, f);
}
