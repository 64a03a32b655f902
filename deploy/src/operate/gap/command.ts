import type { Command } from 'commander'
import { UsageError } from '../../config.js'
import { withData } from '../../reach.js'
import { addCommand, print, type Terminal } from '../../terminal/terminal.js'
import { acceptGap, type Gaps, listGaps, type StallStatus } from './operation.js'

export function addGap(program: Command, terminal: Terminal): void {
  addCommand(program, 'gap', 'events that the log lost before they were loaded: gap list, gap accept <topic>')
    .argument('<action>', 'list, or accept: continue without these events, permanently')
    .argument('[topic]', 'with the gap')
    .action(async (action: string, topic: string | undefined, options: { json?: boolean }) => {
      if (action === 'list' && topic === undefined) {
        const gaps = await withData(terminal, (operations) => operations.run(listGaps, {}))
        return print(terminal, options.json, gaps, linesOf(gaps))
      }
      if (action !== 'accept' || topic === undefined)
        throw new UsageError(`gap takes list, or accept and a topic; got ${[action, topic ?? []].flat().join(' ')}.`)
      const accepted = await withData(terminal, (operations) => operations.run(acceptGap, { topic }))
      print(terminal, options.json, accepted, acceptedLines(topic, accepted))
    })
}

function linesOf({ open, accepted }: Gaps): string[] {
  if (open.length + accepted.length === 0) return ['There are no gaps: the log has all events that are loaded next.']
  return [
    ...open.map(({ reason }) => `Stalled: ${reason}`),
    ...accepted.map(
      ({ topic, epoch, partition, first, next, acceptedAt }) =>
        `Accepted at ${acceptedAt}: offsets ${first} to ${next - 1} of ${topic}, epoch ${epoch}, partition ` +
        `${partition} are missing`
    )
  ]
}

function acceptedLines(topic: string, accepted: readonly StallStatus[]): string[] {
  if (accepted.length === 0) return [`Nothing of ${topic} is missing; nothing was changed.`]
  return accepted.map(
    ({ epoch, partition, loaded, first }) =>
      `Loading of ${topic}, epoch ${epoch}, partition ${partition} continues at ${first}; offsets ${loaded} to ` +
      `${first - 1} stay missing.`
  )
}
