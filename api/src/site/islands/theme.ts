// Runs before the page is drawn, so that a chosen theme does not flash. A classic script: it has no imports.
{
  const stored = (() => {
    try {
      return JSON.parse(localStorage.getItem('theme') ?? 'null')
    } catch {
      // Storage is blocked: the system's theme stays.
      return null
    }
  })()
  const root = document.documentElement
  // What only a script can do takes its place before the page is drawn.
  root.classList.add('has-script')
  if (root.dataset.theme === undefined && (stored === 'dark' || stored === 'light')) root.dataset.theme = stored
}
