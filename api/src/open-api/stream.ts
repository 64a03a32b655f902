import type { RefusalCode } from '@gamenet/schemas'
import { StreamPage } from '@gamenet/schemas'
import type { Components, Json } from '../answers/components.js'
import { StreamInput } from '../stream/request.js'

/** The description of `GET /api/stream`, which is not an endpoint: its answer has no end, no ETag and no cache. */
export const streamRoute = {
  operationId: 'stream',
  path: '/api/stream',
  tags: ['Stream'],
  summary: 'Events as they are recorded, from any point in history',
  description:
    'Server-sent events: `event` is the kind, `id` the cursor, `data` the event without its cursor. With ' +
    '`Accept: application/x-ndjson` one JSON object a line, an object with `cursor` alone as a keep-alive; with ' +
    '`wait` ' +
    'one JSON answer; `Accept: application/json` without `wait` gets server-sent events, too. Each event comes once, ' +
    'in the order of recording: a late import comes at the end. Within a kind, the events of one title, board or ' +
    'user ' +
    'keep their order; different kinds and keys do not. Cursors are opaque, bound to `kinds` and the filter, and ' +
    'valid forever; every process serves those of all others. `live-counts` begins with `state`, the answer of ' +
    '`/api/online-users`, and continues with `difference`, `{"changed": {"Halo 2": {"online": 12}}, "gone": ' +
    '["Fable"]}`: by name of the game the fields that have changed, or all fields of a new game; and the games that ' +
    'are no longer in the answer. Both have no cursor. An undone import is sent as `retracted`.',
  input: StreamInput,
  refuses: [
    'query_encoding_invalid',
    'request_invalid',
    'game_unknown',
    'cursor_invalid',
    'known_at_unsupported',
    'uri_too_long',
    'internal',
    'streams_per_address',
    'streams_full',
    'engine_busy',
    'engine_away',
    'data_damaged',
    'disk_full'
  ] as readonly RefusalCode[]
}

const CURSOR = '0BU8Dg5V__1E0P27__1vxt5d0'
const EVENT =
  '"kind":"count","happenedAt":"2026-03-14T20:00:00.000Z","knownAt":"2026-03-14T20:00:00.250Z",' +
  '"data":{"recorded_at":"2026-03-14 20:00:00","registered_count":21345,"online_count":87,"lobby_count":3}'

/** The bodies of the three forms. */
export function streamContent(components: Components): Json {
  return {
    'application/json': {
      schema: components.schema(StreamPage, 'output', 'StreamPage'),
      example: { events: [{ cursor: CURSOR, ...JSON.parse(`{${EVENT}}`) }], cursor: CURSOR }
    },
    'text/event-stream': {
      schema: { type: 'string' },
      example: `event: count\nid: ${CURSOR}\ndata: {${EVENT}}\n\n`
    },
    'application/x-ndjson': { schema: { type: 'string' }, example: `{"cursor":"${CURSOR}",${EVENT}}\n` }
  }
}
