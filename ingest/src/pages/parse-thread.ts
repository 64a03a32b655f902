import { parentPort } from 'node:worker_threads'
import { openCalls } from '@gamenet/schemas'
import { pageParsers } from './page-parsers.js'
import type { ParseHost, ParseThread } from './page-parsing.js'

if (parentPort === null) throw new Error('This file runs only as the thread that parses pages')
const host = openCalls<ParseHost>(parentPort, {
  parse: ({ kind, html, address }) => {
    host.notify('begins')
    return pageParsers[kind](html, address)
  }
} satisfies ParseThread)
