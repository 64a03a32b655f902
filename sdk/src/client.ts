import { healthMethods } from './health.js'
import { networkCountMethods } from './network-count.js'
import { type ClientOptions, requester } from './request.js'
import { titleMethods } from './title.js'
import { titleCountMethods } from './title-count.js'

/** One method for each operation of the service, by its `operationId`. */
export type GamenetClient = ReturnType<typeof gamenetClient>

/**
 * A client of one service. Answers are asked for again with their ETag, so that what has not changed is not sent twice.
 * Every method rejects with a `GamenetError`, or with its signal's reason when that ended the call.
 */
export function gamenetClient(options: ClientOptions) {
  const get = requester(options)
  return { ...networkCountMethods(get), ...titleCountMethods(get), ...titleMethods(get), ...healthMethods(get) }
}
