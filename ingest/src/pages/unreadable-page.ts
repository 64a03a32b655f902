/** The refusal of a whole page. In a separate file, because only the parsing thread loads the parsers. */
export function unreadablePage(reason: string): { ok: false; reason: string } {
  return { ok: false, reason }
}
