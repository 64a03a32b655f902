import { parentPort, workerData } from 'node:worker_threads'
import { Client } from 'undici'

/*
 * A thread that requests a ready answer repeatedly on one connection until it is stopped, then posts the times in ms. It is a
 * separate thread, because opening 2,000 connections delays an event loop.
 */

const EVERY_MS = 10

const client = new Client(String(workerData))
const times: number[] = []
let isStopping = false
parentPort?.once('message', () => {
  isStopping = true
})
while (!isStopping) {
  const begun = performance.now()
  const { statusCode, body } = await client.request({ method: 'GET', path: '/api/online-users' })
  await body.arrayBuffer()
  if (statusCode !== 200) throw new Error(`expected a ready answer with status 200, got ${statusCode}`)
  times.push(performance.now() - begun)
  await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
}
await client.close()
parentPort?.postMessage(times)
