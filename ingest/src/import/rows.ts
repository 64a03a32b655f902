/*
 * cut     the place where one row of a text ends
 * forced  cut at the end of its first line, because the row does not end where it could; its text then does not
 *         parse, so it is reported as a fault, and the following lines are read as rows again
 */

/** One row of the file. `line` counts from 1 and is the first line of the row. */
export type Row = { readonly line: number; readonly text: string; readonly fault?: string }

/** The content at a place of the text: a row, a separator, or the beginning of an incomplete row. */
export type Cut =
  | { readonly kind: 'row'; readonly start: number; readonly end: number; readonly next: number }
  | { readonly kind: 'between'; readonly next: number }
  | { readonly kind: 'fault'; readonly start: number; readonly next: number; readonly reason: string }
  | 'more'

/** Divides text into rows. Cutters keep state: one instance serves one file, once. */
export type Cutter = {
  /** The longest row in characters. A longer one is a fault, which bounds the memory. */
  readonly rowCharsMax: number
  cut(text: string, from: number): Cut
  /** Called when the current row was cut by force. */
  forced(): void
  /** Called after the last row. Returns the fault of the file as a whole. */
  endFault(): string | undefined
}

const NEWLINE = '\n'

/**
 * Divides text in blocks of any size into rows: one array per block. Holds one block and at most one unfinished row.
 * Rows with invalid UTF-8 or NUL are faults.
 */
export async function* rowsOf(
  blocks: AsyncIterable<string>,
  cutter: Cutter,
  onOpenEnd: () => void = () => undefined
): AsyncGenerator<readonly Row[]> {
  const state: Window = { text: '', line: 1, isSkipping: false, isSuspect: false }
  for await (const block of blocks) {
    state.text = state.text === '' ? block : state.text + block
    state.isSuspect ||= block.includes('\uFFFD') || block.includes('\0')
    yield takeRows(state, cutter, false)
  }
  // The last line may lack a line end.
  if (state.text !== '' && !state.text.endsWith(NEWLINE)) {
    state.text += NEWLINE
    onOpenEnd()
  }
  const last = takeRows(state, cutter, true)
  const fault = cutter.endFault()
  yield fault === undefined ? last : [...last, { line: state.line, text: '', fault }]
}

type Window = {
  /** Read and not yet divided text; its first character is on `line`. */
  text: string
  line: number
  /** Inside a line that is too long: everything up to its end is dropped. */
  isSkipping: boolean
  isSuspect: boolean
}

function takeRows(state: Window, cutter: Cutter, isLast: boolean): readonly Row[] {
  const rows: Row[] = []
  const { text } = state
  let at = state.isSkipping ? skipLine(state) : 0
  const lines = lineCounter(text, at)
  while (at < text.length) {
    let cut = cutter.cut(text, at)
    if (cut === 'more') {
      if (!isLast && text.length - at <= cutter.rowCharsMax) break
      cut = force(state, at, cutter)
    }
    if (cut.kind !== 'between') state.line += lines.upTo(cut.start)
    if (cut.kind === 'row') rows.push(judged(state, cut, cutter.rowCharsMax))
    if (cut.kind === 'fault') rows.push({ line: state.line, text: '', fault: cut.reason })
    state.line += lines.upTo(cut.next)
    at = cut.next
  }
  state.text = text.slice(at)
  if (state.text === '') state.isSuspect = false
  return rows
}

/** Cuts at the end of the first line. If that end is not in the text yet, drops the line, whatever its length. */
function force(state: Window, from: number, cutter: Cutter): Exclude<Cut, 'more'> {
  cutter.forced()
  const { text } = state
  const newline = text.indexOf(NEWLINE, from)
  if (newline !== -1) return { kind: 'row', start: from, end: newline, next: newline + 1 }
  state.isSkipping = true
  return { kind: 'row', start: from, end: text.length, next: text.length }
}

/** Returns the index after the dropped line. */
function skipLine(state: Window): number {
  const newline = state.text.indexOf(NEWLINE)
  if (newline === -1) return state.text.length
  state.isSkipping = false
  state.line += 1
  return newline + 1
}

function judged(state: Window, cut: { start: number; end: number }, charsMax: number): Row {
  const { line, text } = state
  if (cut.end - cut.start > charsMax)
    return { line, text: '', fault: `the row is longer than ${charsMax} characters; the rest of its line is skipped` }
  const row = text.slice(cut.start, cut.end)
  if (state.isSuspect && row.includes('\uFFFD')) return { line, text: '', fault: 'the row is not valid UTF-8' }
  if (state.isSuspect && row.includes('\0')) return { line, text: '', fault: 'the row holds a NUL character' }
  return { line, text: row }
}

/** Counts line ends between rising places. Each character is read once, also if rows are many and lines are few. */
function lineCounter(text: string, from: number): { upTo(place: number): number } {
  let newline = text.indexOf(NEWLINE, from)
  return {
    upTo(place) {
      let count = 0
      for (; newline !== -1 && newline < place; newline = text.indexOf(NEWLINE, newline + 1)) count += 1
      return count
    }
  }
}
