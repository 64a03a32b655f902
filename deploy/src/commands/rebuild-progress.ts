import { setTimeout as wait } from 'node:timers/promises'
import type { RebuildStatus } from '@gamenet/projector/rebuild'
import { durationText } from '@gamenet/schemas'
import cliProgress from 'cli-progress'
import { FailureError } from '../config.js'
import { barFormat } from './bar-format.js'
import { percentOf, rateOf } from './rebuild-text.js'
import type { Terminal } from './terminal.js'

const ASK_AGAIN_MS = 500
const PLAIN_PROGRESS_MS = 5000

/** Asks how far a rebuild has come until it no longer fills, and shows it: a bar on a terminal, lines elsewhere. */
export async function followRebuild(
  terminal: Terminal,
  isShown: boolean,
  list: () => Promise<readonly RebuildStatus[]>,
  begun: RebuildStatus
): Promise<RebuildStatus> {
  const progress = isShown ? showProgress(terminal) : { update: () => {}, stop: () => {} }
  try {
    for (let status = begun; ; ) {
      progress.update(status)
      if (status.state !== 'filling') return status
      await wait(ASK_AGAIN_MS)
      const found = (await list()).find(({ id }) => id === begun.id)
      if (found === undefined)
        throw new FailureError(
          `Rebuild ${begun.id} is not known any more; \`gamenet rebuild status\` lists those that are.`
        )
      status = found
    }
  } finally {
    progress.stop()
  }
}

function showProgress({ errors }: Terminal): { update(status: RebuildStatus): void; stop(): void } {
  if (!errors.isTTY) {
    let saidAt = Date.now()
    const update = (status: RebuildStatus) => {
      if (Date.now() - saidAt < PLAIN_PROGRESS_MS) return
      saidAt = Date.now()
      errors.write(`${progressLine(status)}\n`)
    }
    return { update, stop: () => {} }
  }
  const bar = new cliProgress.SingleBar(
    { format: barFormat('{table} {bar} {percentage} % | {rate} | {left} left'), clearOnComplete: true, stream: errors },
    cliProgress.Presets.shades_classic
  )
  bar.start(1, 0, { table: '', rate: '', left: '?' })
  const update = ({ projection, progress }: RebuildStatus) => {
    bar.update(progress.share, {
      table: progress.projection === '' ? projection : progress.projection,
      rate: rateOf(progress),
      left: progress.etaSeconds === null ? '?' : durationText(progress.etaSeconds)
    })
  }
  return { update, stop: () => bar.stop() }
}

function progressLine({ projection, progress }: RebuildStatus): string {
  const eta = progress.etaSeconds === null ? '' : `, ${durationText(progress.etaSeconds)} left`
  const now = progress.projection === '' ? '' : ` (${progress.projection})`
  return `${projection}${now}: ${percentOf(progress)} %, ${rateOf(progress)}${eta}`
}
