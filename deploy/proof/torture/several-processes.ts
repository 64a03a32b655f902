import { randomUUID } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openPostgres } from '@gamenet/engines'
import { openKafkaLog } from '@gamenet/engines/log'
import { freePort } from '@gamenet/engines/testing'
import { endLeases } from '@gamenet/ingest'
import type { Environment } from '../../test/service/gamenet.js'
import { differences } from './compare.js'
import { scrapedOften, scrapeToEnd } from './embedded.js'
import { type RealEngines, startRealEngines } from './engine-actors.js'
import { inTime } from './in-time.js'
import { startLoad } from './load.js'
import { type Actor, type Blow, Role } from './role.js'
import type { Outcome, Surroundings } from './surroundings.js'
import { chance, wholeChance } from './world.js'

const PARTITIONS = 3
/** Maximum number of processes that are down or starting at once. */
const DOWN_MAX = 3
const DOWN_MS_MAX = 3000
const REST_MS_MAX = 2500
const FROZEN_MS_MAX = 6000
const FREEZE_SHARE = 0.2
/** Cumulative share: between {@link FREEZE_SHARE} and this one, processes get a stop request before the kill. */
const TERMINATED_SHARE = 0.3
/** Shorter than the graceful stop of any process. */
const TERMINATE_AFTER_MS_MAX = 250

/** Runs roles in separate processes on real engines and kills all of them; returns every difference found at the end. */
export async function tortureSeveral(
  surroundings: Surroundings,
  { onReplicas }: { readonly onReplicas: boolean }
): Promise<Outcome> {
  const { directory, facts, rebuilt, calm, auth, upstream, note } = surroundings
  const engines = await startRealEngines(join(directory, 'engines'), { onReplicas })
  const ports = await Promise.all(Array.from({ length: 5 }, freePort))
  const [apiPort, otherApiPort, operatorPort, projectorPort, otherProjectorPort] = ports.map(String)
  const faults: string[] = []
  const needs = {
    written: (text: string) => appendFileSync(join(directory, 'service.log'), text),
    fault: (sentence: string) => void faults.push(sentence)
  }
  const environment: Environment = {
    ...scrapedOften(calm),
    KAFKA_BROKERS: engines.kafka,
    KAFKA_PARTITIONS: `${PARTITIONS}`,
    CLICKHOUSE_URL: engines.clickhouse,
    POSTGRES_URL: engines.postgres,
    UPSTREAM_URL: upstream.url,
    AUTH_URL: auth.url
  }
  const role = (name: string, command: string, more: Environment = {}) =>
    new Role(name, command, { ...environment, DATA_DIR: join(directory, 'data', name), ...more }, needs)
  const ingests = [role('ingest 1', 'ingest', { OPERATOR_PORT: operatorPort ?? '' }), role('ingest 2', 'ingest')]
  const projectors = [
    role('projector 1', 'projector', { OPERATOR_PORT: projectorPort ?? '' }),
    role('projector 2', 'projector', { OPERATOR_PORT: otherProjectorPort ?? '' })
  ]
  const apis = [role('api 1', 'api', { PORT: apiPort ?? '' }), role('api 2', 'api', { PORT: otherApiPort ?? '' })]
  const roles = [...ingests, ...projectors, ...apis]
  const urlOf = (port = '') => `http://127.0.0.1:${port}`
  const operatorUrl = urlOf(operatorPort)
  const load = await startLoad({
    facts,
    auth,
    operatorUrl,
    apiUrls: [urlOf(apiPort), urlOf(otherApiPort)],
    projectorUrls: [urlOf(projectorPort), urlOf(otherProjectorPort)],
    rebuilt,
    calm
  })
  try {
    await inTime('the first start of all processes', Promise.all(roles.map((each) => each.start())))
    note('all processes run')
    await strikeAll(surroundings, [...roles, ...engines.actors])
    await Promise.all(roles.map((each) => each.isUp()))
    note('everything is up again')
    await load.rebuilt()
    await load.drain()
    note('all requests are acknowledged')
    upstream.freeze()
    await Promise.all(ingests.map((ingest) => ingest.stop()))
    await freeLeases(engines)
    await ingests[0]?.start()
    await inTime('the last scrape of everything', scrapeToEnd({ operatorUrl }))
    note('everything is published')
    await Promise.all([...projectors, ...apis, ...ingests.slice(0, 1)].map((each) => each.stop()))
    await inTime('the end of the load', load.stop())
    note('everything has stopped')
    const compared = await inTime('comparing', comparedWhenStopped(engines, facts))
    return { differences: [...load.wrong, ...faults, ...compared], startsMs: [] }
  } catch (error) {
    for (const each of roles) note(each.outputTail())
    throw error
  } finally {
    // Before the load stops, because this interrupts unanswered requests.
    await Promise.all(roles.map((each) => each.kill()))
    await load.stop()
    await engines.stop()
  }
}

/** Ends the leases of dead processes; no process visits boards now. */
async function freeLeases({ postgres }: RealEngines): Promise<void> {
  const writes = openPostgres({ url: postgres })
  await endLeases(writes)
  await writes.close()
}

/** Kills or pauses one process after another, while earlier ones restart. */
async function strikeAll({ facts, kills, note }: Surroundings, actors: readonly Actor[]): Promise<void> {
  const rising = new Set<Promise<void>>()
  const failed: unknown[] = []
  const { seed } = facts
  for (const until = facts.counts.kills + kills; facts.counts.kills < until; ) {
    const number = facts.counts.kills + facts.counts.pauses
    const chosen = wholeChance(actors.length, seed, number, 201)
    const actor = [...actors.slice(chosen), ...actors.slice(0, chosen)].find((each) => each.isAlive())
    if (actor !== undefined) {
      const blow = blowOf(seed, number)
      const freeze = 'frozenMs' in blow ? actor.freeze?.bind(actor, blow.frozenMs) : undefined
      const kind = freeze === undefined ? 'kill' : 'pause'
      const when = 'askedMs' in blow && actor instanceof Role ? 'shutdown' : 'any'
      facts.add({ fact: 'struck', kind, who: actor.name.replace(/ \d$/, ''), when })
      note(`${kind} ${number}: ${actor.name}, ${JSON.stringify(blow)}`)
      const up = freeze?.() ?? actor.strike('frozenMs' in blow ? { downMs: blow.frozenMs } : blow)
      const restart = up.catch((error: unknown) => void failed.push(error)).finally(() => rising.delete(restart))
      rising.add(restart)
    }
    await pause(chance(seed, number, 204) * REST_MS_MAX)
    while (rising.size >= DOWN_MAX) await inTime(`the restart after blow ${number}`, Promise.race(rising))
  }
  await inTime('the restarts after the last blow', Promise.all(rising))
  if (failed.length > 0) throw failed[0]
}

function blowOf(seed: number, number: number): Blow | { readonly frozenMs: number } {
  const kind = chance(seed, number, 202)
  const long = chance(seed, number, 203) ** 2
  if (kind < FREEZE_SHARE) return { frozenMs: Math.round(long * FROZEN_MS_MAX) }
  const downMs = Math.round(long * DOWN_MS_MAX)
  return kind < TERMINATED_SHARE
    ? { downMs, afterMs: Math.round(chance(seed, number, 205) * TERMINATE_AFTER_MS_MAX) }
    : { downMs }
}

async function comparedWhenStopped(engines: RealEngines, facts: Surroundings['facts']): Promise<string[]> {
  const tables = await engines.openTables()
  const writes = openPostgres({ url: engines.postgres })
  const reader = openKafkaLog({
    brokers: [engines.kafka],
    clientId: 'torture',
    // A separate group: Kafka may still assign partitions to dead members of the service's group.
    groupId: `torture-${randomUUID()}`,
    topicPrefix: 'gamenet.',
    partitions: PARTITIONS,
    replicationFactor: 1,
    epoch: 1
  })
  try {
    return await differences({ tables, writes, reader, directory: engines.directory }, { facts, canBePartial: true })
  } finally {
    await Promise.all(tables.map((each) => each.close()))
    await reader.close()
    await writes.close()
  }
}
