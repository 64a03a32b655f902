import { parentPort } from 'node:worker_threads'
import { type ParseRequest, pageParsers } from './page-parsers.js'

/* The other side of page-parsing.ts: one request, one answer. */

parentPort?.on('message', ({ kind, html, address }: ParseRequest) => {
  parentPort?.postMessage(pageParsers[kind](html, address))
})
