"""Texts, tables and pages in HTML, safe whatever the texts hold."""

from html import escape as escape_markup

# Colours in the light and in the dark. Of drawings, only the squares of dropped claims differ.
_LIGHT = """--ink:#1d1d1d;--soft:#444;--paper:#fff;--frame:#d0d0d0;--line:#e2e2e2;
--rule:#9a9a9a;--quote:#eef3f8;--square:#f4f4f4;--bar:#2f5d8a;--gone:#5c5c5c;--false:#a84300"""
_DARK = """--ink:#e4e8ee;--soft:#b9c2ce;--paper:#1b222c;--frame:#38424f;--line:#333c48;
--rule:#6f7b8a;--quote:#232d3a;--square:#2c3542;--bar:#7fb0e0;--gone:#9aa6b5;--false:#ff9a5c"""

# What says that the surroundings are dark: the documentation, Jupyter, VS Code, `page`.
STYLE = (
    f".skdcf{{{_LIGHT}}}"
    'html[data-theme="dark"] .skdcf,[data-jp-theme-light="false"] .skdcf,'
    f".vscode-dark .skdcf{{{_DARK}}}"
    f"@media(prefers-color-scheme:dark){{.skdcf-page .skdcf{{{_DARK}}}}}"
    """
.skdcf{font:14px/1.45 system-ui,-apple-system,"Segoe UI",sans-serif;color:var(--ink);
background:var(--paper);border:1px solid var(--frame);border-radius:6px;
padding:12px 14px;margin:4px 0;max-width:70em;box-sizing:border-box;text-align:left;
overflow-wrap:anywhere}
.skdcf .title{font-weight:600;margin:0 0 6px}
.skdcf .problem{white-space:pre-wrap;margin:0 0 10px;padding:6px 10px;
background:var(--quote);border-left:3px solid var(--bar)}
.skdcf .both{display:flex;flex-wrap:wrap;gap:10px 22px;align-items:flex-start}
.skdcf .drawing{max-width:100%;overflow-x:auto}
.skdcf .drawing svg{display:block;max-width:none}
.skdcf rect{fill:var(--square)}
.skdcf rect+text{fill:var(--soft)}
.skdcf ol.claims{flex:1 1 19em;min-width:0;list-style:none;margin:0;padding:0}
.skdcf ol.claims>li{display:grid;grid-template-columns:34px minmax(0,1fr);gap:0 6px;
margin:0;padding:1px 0;align-items:center;border-bottom:1px solid var(--line)}
.skdcf ol.claims>li::marker{content:none}
.skdcf ol.claims svg{display:block}
.skdcf .said{white-space:pre-wrap;unicode-bidi:isolate}
.skdcf del{color:var(--gone)}
.skdcf .words{font-size:12px;font-weight:600;color:var(--soft);white-space:nowrap}
.skdcf .false .words{color:var(--false)}
.skdcf .reason{display:block;font-size:12.5px;color:var(--soft)}
.skdcf .legend{display:flex;flex-wrap:wrap;gap:2px 16px;margin:8px 0 0;font-size:12.5px;
align-items:center}
.skdcf .legend span{display:inline-flex;align-items:center;gap:5px}
.skdcf .plot{background:#fff;border-radius:4px;max-width:100%;overflow-x:auto}
.skdcf table.numbers{border-collapse:collapse;font-variant-numeric:tabular-nums;
margin:4px 0;background:none;color:inherit}
.skdcf .wide{overflow-x:auto}
.skdcf table.numbers caption{text-align:left;padding:2px 0 6px;color:inherit}
.skdcf table.numbers tbody tr{background:none}
.skdcf table.numbers th,.skdcf table.numbers td{padding:3px 10px;text-align:right;
border-bottom:1px solid var(--line);background:none;color:inherit;white-space:nowrap}
.skdcf table.numbers th{border-bottom:2px solid var(--rule);font-weight:600}
.skdcf table.numbers td:first-child,.skdcf table.numbers th:first-child{text-align:left}
.skdcf details{margin:4px 0}
.skdcf summary{cursor:pointer}
"""
)

# Formulas stay as they were written: typesetting would run on texts from outside.
IGNORE = "tex2jax_ignore mathjax_ignore"

PAGE = """<!DOCTYPE html>
<html lang="en" class="skdcf-page">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body{{margin:0 auto;max-width:68em;padding:12px;background:#fafafa;color:#1d1d1d;
font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}}
@media(prefers-color-scheme:dark){{body{{background:#12171e;color:#e4e8ee}}}}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def escape(text):
    """Any text as harmless HTML: no markup, no attribute, nothing that is not seen."""
    seen = (c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in str(text))
    return escape_markup("".join(seen), quote=True)


def card(body, title=None):
    """HTML in a frame with the style that it needs; ``title`` is text."""
    head = "" if title is None else f'<p class="title">{escape(title)}</p>'
    return f'<div class="skdcf {IGNORE}"><style>{STYLE}</style>{head}{body}</div>'


def table(header, rows, caption=None):
    """A table of texts, the first column to the left and all others to the right."""
    said = "" if caption is None else f"<caption>{escape(caption)}</caption>"
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    lines = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row in rows
    )
    inside = f"{said}<thead><tr>{names}</tr></thead><tbody>{lines}</tbody>"
    return f'<div class="wide"><table class="numbers">{inside}</table></div>'


def page(body, title):
    """A whole document in one string that asks nothing of any server.

    Parameters
    ----------
    body : str
        HTML, such as cards.
    title : str
    """
    return PAGE.format(title=escape(title), body=body)
