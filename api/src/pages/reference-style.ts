/** The style sheet of /docs. Colours have a contrast of at least 4.5 in both schemes. */
export const REFERENCE_STYLE = `:root { color-scheme: light dark; --line: #8884; --code: #8881; }
* { box-sizing: border-box; }
body { margin: 0; color: light-dark(#1a1a1a, #e6e6e6); background: light-dark(#fff, #161616); }
body { font: 16px/1.5 system-ui, sans-serif; display: grid; grid-template-columns: 15rem minmax(0, 1fr); }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1rem; border-right: 1px solid var(--line); }
nav ul { list-style: none; padding: 0; }
nav a, main a { color: light-dark(#0b57d0, #a8c7fa); }
main { padding: 1rem 2rem 4rem; max-width: 72rem; }
h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
article { margin: 2rem 0; }
h1 small { font-size: 1rem; font-weight: normal; }
code { font: 0.875em ui-monospace, monospace; }
pre { padding: 0.75rem; overflow: auto; background: var(--code); border: 1px solid var(--line); }
.path b { margin-right: 0.5rem; }
.table { overflow: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.6rem; border-bottom: 1px solid var(--line); }
summary { cursor: pointer; }
@media (max-width: 45rem) {
  body { display: block; }
  nav { position: static; height: auto; border: 0; }
  main { padding: 1rem; }
}
`
