import { messageWithCause } from '@gamenet/schemas'
import type { EngineChild } from './child.js'
import { ClickHouseError } from './clickhouse.js'

export type Question = {
  /** The engine's name of the answer's format. */
  readonly format: string
  /** Values of `{name: Type}`, as the engine writes them. */
  readonly parameters?: Readonly<Record<string, string>>
}

/**
 * Sends one statement of any length to a ClickHouse that {@link startChild} has started; returns the whole answer.
 * Every failure is a ClickHouseError; without a code if the process has ended.
 */
export const asker = (child: Pick<EngineChild, 'ports'>, password: string, user = 'gamenet') => {
  const headers = { Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` }
  return async (statement: string, { format, parameters = {} }: Question): Promise<Uint8Array> => {
    const url = new URL(`http://127.0.0.1:${child.ports[0]}/`)
    const query = url.searchParams
    // An answer begins when its statement has ended, so that a statement that fails has its own error.
    query.set('default_format', format)
    query.set('wait_end_of_query', '1')
    for (const [name, value] of Object.entries(parameters)) query.set(`param_${name}`, value)
    const unanswered = (cause: unknown): never => {
      throw new ClickHouseError(`ClickHouse does not answer: ${messageWithCause(cause)}`, { cause })
    }
    const reply = await fetch(url, { method: 'POST', headers, body: statement }).catch(unanswered)
    const bytes = new Uint8Array(await reply.arrayBuffer().catch(unanswered))
    if (reply.ok) return bytes
    const code = reply.headers.get('x-clickhouse-exception-code')
    throw new ClickHouseError(new TextDecoder().decode(bytes).trim(), code === null ? {} : { code: Number(code) })
  }
}
