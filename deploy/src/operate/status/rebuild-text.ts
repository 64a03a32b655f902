import type { Difference, RebuildPlan, RebuildProgress, RebuildStatus, VerifyReport } from '@gamenet/projector/rebuild'
import { bytesText, durationText } from '@gamenet/schemas'
import { counted, minuteOf, table } from '../../terminal/terminal.js'

export function linesOfPlan(plan: RebuildPlan): string[] {
  const { fromLog } = plan
  const holding = (each: { readonly table: string; readonly rows: number; readonly bytes: number }) =>
    `${each.table} (${counted(each.rows, 'row')}, ${bytesText(each.bytes)})`
  const loaded =
    fromLog === null
      ? []
      : [
          [
            '',
            `the log of ${fromLog.topic}`,
            holding(fromLog.writes),
            `${fromLog.events}`,
            durationText(fromLog.seconds)
          ]
        ]
  const rows = plan.unit.map(({ projection, reads, writes, events, seconds }) => [
    projection,
    reads.join(', '),
    writes.map(holding).join(', '),
    `${events}`,
    seconds === null ? '?' : durationText(seconds)
  ])
  const free = plan.bytesFree === null ? 'free space unknown' : `${bytesText(plan.bytesFree)} are free`
  return [
    `${plan.projection} is rebuilt with all projections that read its ${fromLog === null ? 'tables' : 'events'}: ` +
      `${plan.unit.length}, swapped together.`,
    '',
    ...table([['PROJECTION', 'READS', 'WRITES', 'EVENTS', 'TAKES'], ...loaded, ...rows]),
    '',
    `${plan.events} events, about ${durationText(plan.seconds)} estimated from a sample`,
    `${bytesText(plan.bytesNeeded)} of additional disk space are needed; ${free}`,
    `${plan.previewRows} rows of old and new tables are read by a preview, and again where they may differ`,
    ...plan.obstacles.map((obstacle) => `It cannot be started: ${obstacle}`)
  ]
}

export function linesOfList(rebuilds: readonly RebuildStatus[]): string[] {
  if (rebuilds.length === 0) return ['There is no rebuild.']
  const troubles = rebuilds.flatMap(({ id, reason }) => (reason === null ? [] : [`Rebuild ${id}: ${reason}`]))
  return [...rebuildTable(rebuilds), ...troubles]
}

/** Formats rebuilds for `gamenet status`. */
export function rebuildTable(rebuilds: readonly RebuildStatus[]): string[] {
  return table([
    ['REBUILD', 'PROJECTION', 'DONE', 'RATE', 'LEFT', 'STARTED', 'STATE'],
    ...rebuilds.map((rebuild) => [
      `${rebuild.id}`,
      [rebuild.projection, ...(rebuild.key === null ? [] : [rebuild.key])].join(' '),
      rebuild.state === 'cancelled' ? '' : `${Math.floor(100 * rebuild.progress.share)} %`,
      rebuild.state === 'filling' ? rateOf(rebuild.progress) : '',
      rebuild.state !== 'filling' || rebuild.progress.etaSeconds === null
        ? ''
        : durationText(rebuild.progress.etaSeconds),
      minuteOf(rebuild.startedAt),
      [stateOf(rebuild), verified(rebuild)].filter((text) => text !== '').join('; ')
    ])
  ])
}

function stateOf({ state, until, isByRecording, retracts, isAutomatic }: RebuildStatus): string {
  if (retracts !== null) return `${state}, undoes import ${retracts}`
  if (isAutomatic) return `${state}, of an upgrade`
  return until === null ? state : `${state}, ${isByRecording ? 'recorded ' : ''}until ${until}`
}

export const linesOfStatus = (rebuild: RebuildStatus): string[] => [...linesOfList([rebuild]), ...nextStep(rebuild)]

/** Returns the commands that an operator may run next. */
function nextStep({ projection, state, until, key, tables, verification }: RebuildStatus): string[] {
  const command = (name: string) => `\`gamenet rebuild ${name} ${projection}\``
  const places = Object.values(tables).join(', ')
  if (key !== null && state === 'swapped')
    return [
      `${key} is right: ${counted(verification?.differences ?? 0, 'row')} differed. ${command('rollback')} undoes ` +
        `it, ${command('drop')} drops the former tables.`
    ]
  if (state === 'filling') return [`${command('status')} shows its progress, ${command('pause')} pauses it.`]
  if (state === 'paused' || state === 'failed')
    return [`${command('resume')} continues it, ${command('cancel')} ends it.`]
  if (state === 'filled' && until !== null) return [`For inspection in ${places}; ${command('cancel')} drops them.`]
  if (state === 'filled') return [`${command('verify')} compares it, then ${command('swap')} swaps it in.`]
  return []
}

function verified({ verification }: RebuildStatus): string {
  if (verification === null) return ''
  const { verifiedAt, isEqual, differences } = verification
  const found = differences === 1 ? '1 row differs' : `${differences} rows differ`
  return `${isEqual ? 'equal' : found}, ${minuteOf(verifiedAt)}`
}

export function linesOfVerify(report: VerifyReport): string[] {
  const rows = report.tables.map((each) => [
    each.table,
    `${each.liveRows}`,
    `${each.freshRows}`,
    `${each.differentBuckets} of ${each.buckets}`,
    `${each.differences}`
  ])
  const all = report.tables.reduce((sum, { differences }) => sum + differences, 0)
  const more = all - report.differences.length
  return [
    ...table([['TABLE', 'ROWS OLD', 'ROWS NEW', 'BUCKETS THAT DIFFER', 'ROWS THAT DIFFER'], ...rows]),
    ...report.differences.flatMap((difference) => ['', ...linesOfDifference(difference)]),
    ...(more > 0 ? ['', `and ${more} more`] : []),
    '',
    conclusionOf(report)
  ]
}

function conclusionOf({ isEqual, until }: VerifyReport): string {
  if (isEqual)
    return until === null ? 'Old and new are equal.' : `Old and new are equal: nothing changed them after ${until}.`
  return until === null
    ? 'Old and new differ; `swap` needs --accept-differences.'
    : `The new ones end at ${until}, the old ones continue: rows that later events created or changed differ as ` +
        `expected, and they are listed. The new tables are for inspection only and cannot be swapped in.`
}

/** Prints the differing columns with both values, and the events to inspect. */
function linesOfDifference({ table: name, key, live, fresh, columns, events }: Difference): string[] {
  const keyText = Object.entries(key)
    .map(([column, value]) => `${column} ${shown(value)}`)
    .join(', ')
  const which = live === null ? ': only in the new tables' : fresh === null ? ': only in the old tables' : ''
  const values = columns.map((column) => [
    `  ${column}`,
    live === null ? '' : `old ${shown(live[column])}`,
    fresh === null ? '' : `new ${shown(fresh[column])}`
  ])
  return [
    `${name} ${keyText}${which}`,
    ...table(values),
    ...(events.length === 0 ? [] : [`  from the events at ${events.join(', ')}`])
  ]
}

const shown = (value: unknown): string => JSON.stringify(value) ?? 'nothing'

export function rateOf({ eventsPerSecond }: RebuildProgress): string {
  return eventsPerSecond === null ? 'no rate yet' : `${Math.round(eventsPerSecond)} events/s`
}
