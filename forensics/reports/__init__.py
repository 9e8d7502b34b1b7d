"""Analysis → text, JSON, HTML, Markdown: a report takes one `Analysis` and writes; no arithmetic.

One module per format: `text`, `json`, `markdown`, `html`; `compare` sets two analyses side by side;
`alerts` and `dashboard` write what a monitoring system needs to see the same incident again;
`export` saves the tables. Whatever comes from input passes `plain` before a person sees it.
"""
