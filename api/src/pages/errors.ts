import { refusals } from '@gamenet/schemas'
import type { FastifyInstance } from 'fastify'
import { ERRORS_PATH } from '../reply/errors.js'
import { addAssets, once } from './asset.js'
import { inline } from './html.js'
import type { Frame, ReferencePage } from './reference.js'

/** The frame of a service without a site: the operator's. */
const PLAIN: Frame = {
  headers: {
    'Content-Security-Policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
  },
  documentOf: ({ title, html }) => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title></head>
<body><main>
${html}
</main></body>
</html>
`
}

/** Adds the page that the header `Link` of every refusal leads to: each code with its status, sentence and reason. */
export async function addErrorsPage(app: FastifyInstance, frame: Frame): Promise<void> {
  const content = once(() => frame.documentOf(errorsPage()))
  await addAssets(app, [{ path: ERRORS_PATH, content }], { ...frame.headers, 'Cache-Control': 'no-cache' })
}

/** Adds the same without the site. */
export async function addPlainErrorsPage(app: FastifyInstance): Promise<void> {
  await addErrorsPage(app, PLAIN)
}

function errorsPage(): ReferencePage {
  const entries = Object.entries(refusals).map(
    ([code, { status, message, when }]) =>
      `<h2 id="${code}">${code}</h2>\n<p>${status}: ${inline(message)}</p>\n<p>${inline(when)}.</p>`
  )
  return {
    title: 'Errors',
    path: ERRORS_PATH,
    html: `<h1>Errors</h1>
<p>The header X-Error-Code of a response has one of these codes. %s stands for a value.</p>
${entries.join('\n')}`
  }
}
