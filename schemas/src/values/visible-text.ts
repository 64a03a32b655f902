/** Returns text as a reader sees it: runs of white space are one space, none at the ends. */
export const visibleText = (text: string): string => text.replace(/\s+/g, ' ').trim()

/**
 * Returns a text as a browser shows it in a line: HTML white space collapsed, none at the ends. Other spaces (no-break,
 * ideographic …) and invisible marks stay: each is part of a name.
 */
export const lineText = (text: string): string => text.replace(/[ \t\n\f\r]+/g, ' ').replace(/^ | $/g, '')
