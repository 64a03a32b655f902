import { bytesText, durationText } from '@gamenet/schemas'
import type { Terminal } from './terminal.js'

/** Progress of a command. */
export type Progress = {
  /** The current phase or file. */
  readonly label: string
  /** Completed share of the work, 0 to 1; absent if unknown. */
  readonly share?: number
  /** Figures, such as `3 of 10 pages`. */
  readonly details?: readonly string[]
  /** Null while unknown. Absent: computed from the share and the elapsed time. */
  readonly etaSeconds?: number | null
  /** Identifies concurrent work: each has its own line. */
  readonly line?: string
}

export type ProgressDisplay = {
  update(progress: Progress): void
  stop(): void
}

const PRINT_MS = 5000
const DRAW_MS = 100
const BAR_WIDTH_MAX = 40
const DEFAULT_COLUMNS = 80

/** Shows progress on standard error: bars on a terminal, periodic lines elsewhere, nothing unless `isShown`. */
export function showProgress(
  { errors }: Pick<Terminal, 'errors'>,
  isShown: boolean,
  now: () => number = Date.now
): ProgressDisplay {
  if (!isShown) return { update: () => undefined, stop: () => undefined }
  return errors.isTTY ? drawn(errors, now) : printed(errors, now)
}

/** Prints a line every 5 s; without a share, one line per label. */
function printed(errors: Terminal['errors'], now: () => number): ProgressDisplay {
  const begunAt = now()
  const withEta = etaOf(now)
  const printedAt = new Map<string, number>()
  const labels = new Map<string, string>()
  return {
    update: (progress) => {
      const { line = '' } = progress
      const shown = withEta(progress)
      const isDue =
        progress.share === undefined
          ? labels.get(line) !== progress.label
          : now() - (printedAt.get(line) ?? begunAt) >= PRINT_MS
      if (!isDue) return
      labels.set(line, progress.label)
      printedAt.set(line, now())
      errors.write(`${progress.label}${figuresOf(shown, ': ', ', ')}\n`)
    },
    stop: () => undefined
  }
}

/** Redraws the lines in place, and clears them at the end. */
function drawn(errors: Terminal['errors'], now: () => number): ProgressDisplay {
  const lines = new Map<string, Progress>()
  const withEta = etaOf(now)
  let drawnAt = 0
  let height = 0
  const clear = () => {
    errors.write(`${height > 1 ? `\x1b[${height - 1}A` : ''}\r\x1b[J`)
    height = 0
  }
  return {
    update: (progress) => {
      lines.set(progress.line ?? '', withEta(progress))
      if (now() - drawnAt < DRAW_MS) return
      drawnAt = now()
      clear()
      height = lines.size
      const texts = [...lines.values()].map((each) => lineOf(each, errors.columns ?? DEFAULT_COLUMNS))
      errors.write(texts.join('\n'))
    },
    stop: clear
  }
}

/** The rate of the first updates is not an estimate: buffers fill. */
const ETA_AFTER_MS = 2000

/** Returns a function that adds the remaining time, by the rate since the label began. */
function etaOf(now: () => number): (progress: Progress) => Progress {
  const beginnings = new Map<string, { readonly label: string; readonly atMs: number; readonly share: number }>()
  return (progress) => {
    const { line = '', label, share, etaSeconds } = progress
    if (share === undefined || etaSeconds !== undefined) return progress
    const known = beginnings.get(line)
    const begun = known?.label === label && share >= known.share ? known : { label, atMs: now(), share }
    beginnings.set(line, begun)
    const ms = now() - begun.atMs
    if (ms < ETA_AFTER_MS || share === begun.share) return { ...progress, etaSeconds: null }
    return { ...progress, etaSeconds: (ms / 1000) * ((1 - share) / (share - begun.share)) }
  }
}

/**
 * Formats one line for a terminal. The bar fills the space next to the figures; a line without space for both is cut at
 * its beginning, because the remaining time is last.
 */
export function lineOf(progress: Progress, columns: number): string {
  // The last column stays empty: some terminals wrap when it is written.
  const width = columns - 1
  const { label, share } = progress
  const bar = (size: number) =>
    share === undefined ? '' : ` ${'█'.repeat(Math.round(size * share))}${'░'.repeat(size - Math.round(size * share))}`
  const line = (size: number) => `${label}${bar(size)}${figuresOf(progress, share === undefined ? ' | ' : ' ', ' | ')}`
  const shortest = line(0)
  if (shortest.length > width) return `…${shortest.slice(1 - width)}`
  return line(Math.min(BAR_WIDTH_MAX, width - shortest.length))
}

function figuresOf({ share, details = [], etaSeconds }: Progress, before: string, between: string): string {
  const percent = share === undefined ? [] : [`${Math.floor(100 * share)} %`]
  const eta =
    etaSeconds === undefined || share === undefined
      ? []
      : [etaSeconds === null ? 'time left unknown' : `${durationText(etaSeconds)} left`]
  const figures = [...percent, ...details, ...eta]
  return figures.length === 0 ? '' : `${before}${figures.join(between)}`
}

/** Returns the progress of work measured in bytes. */
export function progressOfBytes(label: string, bytes: number, bytesTotal: number): Progress {
  return {
    label,
    share: bytes / Math.max(1, bytesTotal, bytes),
    details: [`${bytesText(bytes)} of ${bytesText(bytesTotal)}`]
  }
}
