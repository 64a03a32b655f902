import { parentPort, workerData } from 'node:worker_threads'
import { request } from 'undici'

/*
 * A thread that reads an export repeatedly and posts the number of exports. It is a separate thread, because reading 180 MB of
 * CSV a second would delay the thread that measures other answers.
 */

const { url, ms } = workerData as { readonly url: string; readonly ms: number }
const begun = performance.now()
let exports = 0
for (; performance.now() - begun < ms; exports += 1) {
  const { statusCode, body } = await request(url)
  await body.dump({ limit: Number.MAX_SAFE_INTEGER })
  if (statusCode !== 200) throw new Error(`${url} answered ${statusCode}`)
}
parentPort?.postMessage(exports)
