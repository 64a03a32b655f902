import { ImportAdvanced, importRunTopic, type LogMessage } from '@gamenet/schemas'
import type { KnownImport } from '../src/index.js'

/** A log in memory that fails on request and returns the states of imports. */
export function memoryLog() {
  const messages = new Map<string, LogMessage[]>()
  const appends: { topic: string; count: number }[] = []
  let failure: { at: number; isWritten: boolean } | undefined
  let underWay = 0
  let mostUnderWay = 0
  const of = (topic: string) => messages.get(topic) ?? []
  return {
    appends,
    of,
    mostUnderWay: () => mostUnderWay,
    /** Makes the n-th append from now on fail, counted from 0, with its messages in the log or not. */
    failAt(at: number, isWritten: boolean) {
      failure = { at: appends.length + at, isWritten }
    },
    async append(topic: string, added: readonly LogMessage[]) {
      underWay += 1
      mostUnderWay = Math.max(mostUnderWay, underWay)
      await new Promise((resolve) => setImmediate(resolve))
      underWay -= 1
      const isFailing = failure?.at === appends.length
      appends.push({ topic, count: added.length })
      if (!isFailing || failure?.isWritten === true) messages.set(topic, [...of(topic), ...added])
      if (isFailing) throw new Error('the disk is full')
    },
    async known(importId: string): Promise<KnownImport | undefined> {
      const newest = of(importRunTopic.name)
        .map(({ value }) => ImportAdvanced.parse(JSON.parse(value)))
        .filter((event) => event.importId === importId)
        .sort((a, b) => a.observedAt.localeCompare(b.observedAt))
        .at(-1)
      return newest === undefined ? undefined : { ...newest, isRetracted: false }
    },
    /** Returns the events of a topic, parsed from JSON. */
    events: (topic: string): unknown[] => of(topic).map(({ value }) => JSON.parse(value)),
    /** Returns the events of a topic by source and id; of equal ones the last. */
    distinct: (topic: string): unknown[] =>
      [
        ...new Map(of(topic).map(({ headers, value }) => [`${headers.ce_source} ${headers.ce_id}`, value])).values()
      ].map((value) => JSON.parse(value))
  }
}
