"""The one page over all tasks: tables and plots inside it, nothing fetched from anywhere."""
import html

from .frame import shown

STYLE = """
body{font:15px/1.45 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:.6em 0 1.4em;font-size:13px}th,td{border:1px solid #ccc;padding:2px 8px;text-align:right}
th{background:#f2f2f2}td:first-child,th:first-child{text-align:left}.ok{color:#176b2c}.bad{color:#b00020;font-weight:600}
h2{border-bottom:2px solid #ddd;margin-top:2em}figure{margin:1em 0}figcaption{font-size:13px;color:#555}.note{color:#555}
"""


def page(reports, about):
    """reports: in order; about: (name, value) pairs of the run."""
    e = html.escape
    parts = ["<!doctype html><html lang='en'><meta charset='utf-8'><title>fuselab: precision report</title>",
             f"<style>{STYLE}</style><h1>fuselab: precision report</h1>",
             "<table>", *(f"<tr><td>{e(k)}</td><td>{e(str(v))}</td></tr>" for k, v in about), "</table>",
             "<table><tr><th>task</th><th>what</th><th>claims that hold</th><th>seconds</th></tr>"]
    for r in reports:
        held = sum(c.holds for c in r.claims)
        parts.append(f"<tr><td><a href='#{e(r.task)}'>{e(r.task)}</a></td><td style='text-align:left'>{e(r.title)}</td>"
                     f"<td class='{'ok' if r.holds else 'bad'}'>{held} of {len(r.claims)}</td><td>{r.seconds:.1f}</td></tr>")
    parts.append("</table>")
    for r in reports:
        parts.append(f"<h2 id='{e(r.task)}'>{e(r.task)}: {e(r.title)}</h2><p>{e(r.about)}</p><ul>")
        parts += [f"<li class='{'ok' if c.holds else 'bad'}'>{e(c.line())}</li>" for c in r.claims]
        parts.append("</ul>")
        for p in r.plots:
            parts.append(f"<figure>{p.svg}<figcaption>{e(p.title)}</figcaption></figure>")
        for t in r.tables:
            parts.append(f"<h3>{e(t.title)}</h3><table><tr>" + "".join(f"<th>{e(c)}</th>" for c in t.columns) + "</tr>")
            parts += ["<tr>" + "".join(f"<td>{e(shown(v))}</td>" for v in row) + "</tr>" for row in t.rows]
            parts.append("</table>")
        parts += [f"<p class='note'>{e(n)}</p>" for n in r.notes]
    return "\n".join(parts) + "</html>\n"
