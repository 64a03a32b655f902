import type { GameListed } from './answers.js'
import { datasetFileMethod } from './datasets.js'
import { operations } from './operations.js'
import { type CallOptions, type ClientOptions, type Parameters, requester } from './request.js'
import { streamMethods } from './stream.js'

/** One method for each operation of the service, by its `operationId`, and `liveCounts` on top of `stream`. */
export type GamenetClient = ReturnType<typeof gamenetClient>

/**
 * A client of one service. Every method gives a {@link Call}: a promise of the answer's data, with its headers and
 * pages. Answers are asked for again with their ETag, so that what has not changed is not sent twice. `stream` and
 * `liveCounts` give an iterator that reconnects, `getDatasetFile` a stream of bytes. Every method rejects with a
 * `GamenetError`, or with its signal's reason when that ended the call.
 */
export function gamenetClient(options: ClientOptions) {
  const requests = requester(options)
  const { get, open } = requests
  return {
    ...operations(requests),
    ...datasetFileMethod(open),
    ...streamMethods(open),

    /** Returns the names of all games in alphabetical order; with `fields: 'all'` with ids and publishers. */
    getGames: <Fields extends 'names' | 'all' = 'names'>(
      parameters: { readonly fields?: Fields | undefined } = {},
      call?: CallOptions
    ) => get<Fields extends 'all' ? GameListed[] : string[]>('/api/games', parameters, call),

    /** A question of the service's operator, by its name; an answer is a list of rows. */
    question: <Row = Readonly<Record<string, unknown>>>(
      name: string,
      parameters: Parameters = {},
      call?: CallOptions
    ) => get<readonly Row[]>('/api/questions/:questionName', { ...parameters, questionName: name }, call)
  }
}
