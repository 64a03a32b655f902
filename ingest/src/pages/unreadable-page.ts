/** The refusal of a whole page. In a separate file, because only the parsing thread loads the parsers. */
export const unreadablePage = (reason: string): { ok: false; reason: string } => ({ ok: false, reason })
