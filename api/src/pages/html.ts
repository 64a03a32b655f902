const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Returns the text escaped for HTML elements and quoted attributes. */
export function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? character)
}

/** Returns the text as inline HTML: `code` between backticks, links as `[text](url)`. */
export function inline(text: string): string {
  return escaped(text)
    .replace(/`([^`]+)`/g, '<code>$1</code>')
    .replace(/\[([^\]]+)\]\(([^)\s]+)\)/g, '<a href="$2">$1</a>')
}

/** Returns paragraphs, separated by empty lines, as HTML. A paragraph whose lines begin with four spaces is code. */
export function paragraphs(text: string): string {
  return text
    .trim()
    .split(/\n{2,}/)
    .map((part) => {
      if (part.startsWith('    ')) return code(part.replace(/^ {4}/gm, ''))
      return `<p>${inline(part)}</p>`
    })
    .join('\n')
}

/** Returns a block of code. It scrolls sideways, so it must be focusable by keyboard. */
export function code(text: string, label = 'Example'): string {
  return `<pre tabindex="0" role="group" aria-label="${escaped(label)}"><code>${escaped(text)}</code></pre>`
}
