import { parentPort } from 'node:worker_threads'
import { type ParseRequest, pageParsers } from './page-parsers.js'
import { PARSING_BEGINS } from './page-parsing.js'

/* The other side of page-parsing.ts: one request; word that it begins, then the answer. */

parentPort?.on('message', ({ kind, html, address }: ParseRequest) => {
  parentPort?.postMessage(PARSING_BEGINS)
  parentPort?.postMessage(pageParsers[kind](html, address))
})
