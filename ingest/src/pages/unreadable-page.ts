/** The refusal of a whole page. Apart from the parsers, which only the thread that parses loads. */
export function unreadablePage(reason: string): { ok: false; reason: string } {
  return { ok: false, reason }
}
