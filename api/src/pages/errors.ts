import { refusals } from '@gamenet/schemas'
import type { FastifyInstance } from 'fastify'
import { ERRORS_PATH } from '../reply/errors.js'
import { addAssets, once } from './asset.js'
import { inline } from './html.js'

/** Adds the page that the header `Link` of every refusal leads to: each code with its status, sentence and reason. */
export async function addErrorsPage(app: FastifyInstance): Promise<void> {
  await addAssets(app, [{ path: ERRORS_PATH, content: once(errorsPage) }], {
    'Cache-Control': 'no-cache',
    'Content-Security-Policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
  })
}

function errorsPage(): string {
  const entries = Object.entries(refusals).map(
    ([code, { status, message, when }]) =>
      `<h2 id="${code}">${code}</h2>\n<p>${status}: ${inline(message)}</p>\n<p>${inline(when)}.</p>`
  )
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Errors of Gamenet Stats</title></head>
<body><main>
<h1>Errors of Gamenet Stats</h1>
<p>The header X-Error-Code of an answer has one of these codes. %s stands for a value.</p>
${entries.join('\n')}
</main></body>
</html>
`
}
