import { parentPort } from 'node:worker_threads'
import { openCalls } from '@gamenet/schemas'
import { foldChunk } from './fold-chunk.js'
import type { FoldThread } from './folding.js'

if (parentPort === null) throw new Error('This file runs only as the thread of folds')
openCalls(parentPort, { fold: foldChunk } satisfies FoldThread)
