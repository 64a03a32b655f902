import { FIRST_GENERATION, Refusal, withServing } from '@gamenet/schemas'
import type { Endpoint, PeriodSeconds } from '../src/answers/endpoint.js'
import { refusalCodes } from '../src/open-api/refused.js'
import { type Boards, boardsOf } from '../src/queries/board-descriptions.js'
import type { Catalog } from '../src/queries/catalog.js'
import type { ReadTables } from '../src/read-tables.js'
import { parseInput } from '../src/request/parameters.js'
import { catalogNaming } from './stored-tables.js'

export type Answer = {
  readonly body: unknown
  readonly resolved: unknown
  readonly headers: Readonly<Record<string, string>>
}

const noWrites = {
  query: async (): Promise<never> => {
    throw new Error('the endpoint asks nothing of PostgreSQL')
  }
}

/** Maximum age of a list with open matches. */
export const OPEN_LIST_AGE_MS = 10 * 60_000

/**
 * Calls an endpoint as the pipeline does, with parameters as in a URL: all strings. The answer must match the schema of
 * the endpoint, and a refusal must be one of its described ones.
 */
export async function ask<Input, Resolved>(...question: Parameters<typeof answerTo<Input, Resolved>>): Promise<Answer> {
  const [endpoint] = question
  return await answerTo(...question).catch((error: unknown) => {
    if (!(error instanceof Refusal) || refusalCodes(endpoint as Endpoint).includes(error.code)) throw error
    throw new Error(`${endpoint.operationId} gave ${error.code}, which its description does not list.`)
  })
}

async function answerTo<Input, Resolved>(
  endpoint: Endpoint<Input, Resolved>,
  given: Readonly<Record<string, unknown>>,
  needs: {
    readonly tables: ReadTables
    readonly nowMs: number
    readonly openListAgeMs?: number
    readonly periodSeconds?: PeriodSeconds
    readonly historyPercent?: number
    readonly catalog?: Catalog
  }
): Promise<Answer> {
  const catalog = async (): Promise<Catalog> => needs.catalog ?? catalogNaming({})
  const { nowMs, openListAgeMs = OPEN_LIST_AGE_MS, periodSeconds = {}, historyPercent } = needs
  const resolved = await endpoint.resolve(parseInput(endpoint.input, given), {
    nowMs,
    openListAgeMs,
    periodSeconds,
    historyPercent,
    catalog
  })
  const signal = new AbortController().signal
  const boards = async (): Promise<Boards> => boardsOf([])
  const made = await endpoint.answer(resolved, {
    tables: withServing(needs.tables, FIRST_GENERATION),
    positions: async () => [],
    writes: noWrites,
    signal,
    catalog,
    boards,
    playersCheckedMs: async () => null
  })
  const json = made.body instanceof Uint8Array ? new TextDecoder().decode(made.body) : JSON.stringify(made.body)
  const body: unknown = JSON.parse(json)
  endpoint.response.parse(body)
  return { body, resolved, headers: { ...endpoint.headers?.(resolved), ...made.headers } }
}
