import { parentPort, workerData } from 'node:worker_threads'
import { Client } from 'undici'

/*
 * A thread that asks for an answer that lies ready, repeatedly, on one connection, until it is stopped; then it
 * posts the times in ms. A thread of its own, because a loop that opens 2,000 connections is late itself.
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
  if (statusCode !== 200) throw new Error(`a ready answer came as ${statusCode}`)
  times.push(performance.now() - begun)
  await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
}
await client.close()
parentPort?.postMessage(times)
