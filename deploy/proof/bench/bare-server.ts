import { readFile } from 'node:fs/promises'
import fastify from 'fastify'

/*
 * Baseline for ready answers: a Fastify that sends bytes from memory.
 * `bare-server.js FILE…` serves the files at /0, /1, …; a file that ends in .gz with `Content-Encoding: gzip`.
 */

const app = fastify({ logger: false })
for (const [i, file] of process.argv.slice(2).entries()) {
  const bytes = await readFile(file)
  const isGzip = file.endsWith('.gz')
  app.get(`/${i}`, (_request, reply) => {
    if (isGzip) reply.header('content-encoding', 'gzip')
    return reply.type('application/json; charset=utf-8').send(bytes)
  })
}
await app.listen({ host: '127.0.0.1', port: 0 })
const address = app.server.address()
process.send?.({ port: typeof address === 'object' ? address?.port : undefined })
process.on('disconnect', () => process.exit(0))
