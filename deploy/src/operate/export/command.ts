import { createReadStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { shownInstant } from '@gamenet/schemas'
import { Argument, type Command } from 'commander'
import { UsageError } from '../../config.js'
import { runShown } from '../../reach.js'
import { addCommand, counted, print, type Terminal, writeContent } from '../../terminal/terminal.js'
import { exportLog } from './operation.js'

type Options = { json?: boolean; topic: string[]; from?: string }

export function addExport(program: Command, terminal: Terminal): void {
  const collect = (value: string, all: string[]) => [...all, value]
  addCommand(program, 'export', 'write the events of the log as CloudEvents, a line each: export log [file]')
    .addArgument(new Argument('<what>', 'what is exported').choices(['log']))
    .argument('[file]', 'on the machine of the service; .gz compresses; standard output for - and unless given')
    .option('--topic <topic>', 'only this topic; may be repeated', collect, [])
    .option('--from <instant>', 'only events from this instant on, ISO 8601')
    .action(async (_what: string, file: string | undefined, options: Options) => {
      if (file !== undefined && file !== '-') {
        const report = await run(terminal, options, resolve(file))
        const left = report.leftOut === 0 ? '' : `; ${report.leftOut} messages are not CloudEvents and were skipped`
        return print(terminal, options.json, report, [
          `Exported ${counted(report.events, 'event')} to ${report.file}${left}.`
        ])
      }
      const folder = await mkdtemp(join(tmpdir(), 'gamenet-'))
      try {
        const path = join(folder, 'log.ndjson')
        await run(terminal, options, path)
        await writeContent(terminal, createReadStream(path, 'utf8'))
      } finally {
        await rm(folder, { recursive: true, force: true })
      }
    })
}

async function run(terminal: Terminal, { json = false, topic, from }: Options, file: string) {
  const input = {
    file,
    ...(topic.length === 0 ? {} : { topics: topic.join(',') }),
    ...(from === undefined ? {} : { from: instantOf(from) })
  }
  return await runShown(terminal, { json }, exportLog, input, ({ topic, events, eventsTotal }) => ({
    label: topic,
    details: [`${events} events`, `${eventsTotal} in the topic`]
  }))
}

function instantOf(text: string): string {
  const ms = Date.parse(text)
  if (Number.isNaN(ms))
    throw new UsageError(`--from takes an instant, such as 2026-03-01T00:00:00Z; got ${JSON.stringify(text)}.`)
  return shownInstant(ms)
}
