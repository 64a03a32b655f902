import { executionAsyncResource } from 'node:async_hooks'

const kept: object[] = []

/**
 * Keeps one entry of the queue of `process.nextTick`. V8 drops the hidden class of objects when a major garbage
 * collection finds none, and entries live briefly: those after it have another class, and V8 makes each by calls of its
 * runtime as long as the process runs: 0.26 instead of 0.06 µs, five times a request and at every step of a stream.
 */
export function keepTickShape(): void {
  process.nextTick(() => kept.push(executionAsyncResource()))
}
