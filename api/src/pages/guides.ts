import type { SampleValues } from './sample-values.js'
import { keyByCurl } from './samples.js'

/** A subject that every client of the API needs to know. `text` has the form that `paragraphs` reads. */
export type Guide = { readonly id: string; readonly title: string; readonly text: string }

/** Returns the path at which a service of a version serves its client, for `npm install`. */
export const sdkPath = (version: string): string => `/sdk/gamenet-sdk-${version}.tgz`

/** The guides at /docs, in reading order. `publicUrl` is the address of the service, `version` the program's. */
export function guides(publicUrl: string, version: string, { named, signIn }: SampleValues): readonly Guide[] {
  return [
    {
      id: 'start',
      title: 'Start',
      text: `
All answers are JSON in UTF-8, and most need no session. Any page may read them: the service allows every origin.

    curl '${publicUrl}/api/online-users'

This service serves its client, with one typed method per operation, for Node and browsers; import it as
\`@gamenet/sdk\`. No registry has it.

    npm install '${publicUrl}${sdkPath(version)}'

For another language, generate a client from
[/openapi.json](/openapi.json) (or [/openapi.yaml](/openapi.yaml)). A \`GET\` of a list also answers CSV, NDJSON,
Parquet and Arrow with \`format=\` or \`Accept\`; [/api/data](/api/data) lists files of whole months.

A path that names a game takes its title id or its name, percent-encoded. Unknown query parameters are ignored and
named in the header \`X-Unknown-Parameters\`. A parameter that is empty, malformed, out of range or given twice is 400.`
    },
    {
      id: 'paging',
      title: 'Pages and cursors',
      text: `
Lists take \`limit\` and \`offset\`. While there is a next page, the header \`Link\` has its address with
\`rel="next"\`.

To follow changes without a gap, begin with \`after=start\` (or \`after=now\` at the stream) and continue with the link
of each answer. A cursor is opaque, belongs to the filter that it was made for, and stays valid over restarts and
rebuilds. Each change is given once, in the order of recording. At the end the list is empty, and its link leads to
later changes.

    curl -i '${publicUrl}/api/leaderboard-changes?after=start&limit=100'

[/api/stream](#stream) sends the same events as they are recorded, as Server-Sent Events, NDJSON or long poll:

    curl -N '${publicUrl}/api/stream?kinds=count,change&after=now'`
    },
    {
      id: 'caching',
      title: 'Caching',
      text: `
Answers have an \`ETag\`. Send it in \`If-None-Match\`: the answer is 304 without a body while nothing has changed.
\`Cache-Control\` says how long an answer may be reused without asking. \`X-Data-Version\` changes when the data of any
answer may have changed.

While the engine behind an answer is away, the service gives the last known answer; \`Age\` is its age in seconds.
Answers to a signed-in user are \`private, no-store\`.`
    },
    {
      id: 'time',
      title: 'Time',
      text: `
Instants are UTC. Parameters take ISO 8601 with \`Z\` or an offset (a \`+\` is written \`%2B\`), or a day, which is its
first instant in the zone \`tz\` (UTC). A range includes its first instant and excludes its last one. Calendar
questions take a time zone of the IANA database in \`tz\`; weeks begin on Monday.

A missing sample is absent, never 0. [/api/coverage](#getCoverage) lists when the collector received nothing.`
    },
    {
      id: 'errors',
      title: 'Errors',
      text: `
Every answer other than 2xx and 304 is \`{"error": "<sentence>"}\`. The sentence is for people and may change. Programs
compare the code in the header \`X-Error-Code\`; [/docs/errors](/docs/errors) explains each. With \`Accept:
application/problem+json\` the body is problem details (RFC 9457).

429 and 503 have \`Retry-After\` in seconds. \`X-Request-Id\` finds the request in the log of the service.`
    },
    {
      id: 'sessions',
      title: 'Sessions',
      text: `
Editing a profile and rating one need a session of the network's auth service. Its key goes into the header
\`X-Session-Key\`. \`POST {auth_url}/api/auth/login\` with an email and a password gives one; in a page,
\`ServiceAuth\` of [/service-auth.js](/service-auth.js) signs a user in and keeps the key. The service sends the key to
nobody but the auth service.

${keyByCurl(signIn).replace(/^/gm, '    ')}
    curl -X POST '${publicUrl}/api/profile/${named.username ?? 'CalmOtter'}/reputation' -H "X-Session-Key: $KEY" \\
      -H 'Content-Type: application/json' -d '{"stars": 5}'`
    },
    {
      id: 'embed',
      title: 'Embeds and badges',
      text: `
Every game, board and player has a card for frames of other pages, from 300 × 150, and pictures that any page can show.
They work without script.
\`theme\` is \`light\` or \`dark\`, \`range\` a range of the page, \`rows\` the length of a list.

In a page of yours: \`<iframe src="${publicUrl}/embed/games/${named.titleId ?? '4d530064'}?range=30d" width="600"
height="320" title="Players"></iframe>\`, or \`<img src="${publicUrl}/games/${named.titleId ?? '4d530064'}/badge.svg"
alt="Players now">\`; \`chart.svg?range=30d\` and \`card.png\` are further pictures.

    curl '${publicUrl}/games/${named.titleId ?? '4d530064'}/badge.svg'

\`/embed/network\` and \`/embed/players/:name\` are further cards;
boards and players have \`badge.svg\`, \`chart.svg\` and \`card.png\` below their pages, too.
Programs that know oEmbed find the card by the address of a page: [/oembed](/docs/guide/embed)\`?url=\`.`
    }
  ]
}
