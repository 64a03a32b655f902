import { ENTRY_CHANGES } from '@gamenet/schemas'
import { Counter, Gauge, type Registry } from 'prom-client'
import type { Visit } from './visit-board.js'

/** The Prometheus metrics of board visits. */
export type BoardMetrics = {
  visited(visit: Visit): void
  /** Reports the number of all places, and of due places with a free lease. */
  counted(leases: { readonly all: number; readonly due: number }): void
}

const OUTCOMES: readonly Visit['outcome'][] = [
  'changed',
  'unchanged',
  'not-modified',
  'absent',
  'failed',
  'behind',
  'given-up'
]

export function createBoardMetrics(registry: Registry): BoardMetrics {
  const registers = [registry]
  const visits = new Counter({
    name: 'gamenet_board_visits_total',
    help:
      'Visits of boards and of lists of boards by outcome; absent: a board without a page; given-up: another process ' +
      'acquired the lease, or the service stopped',
    labelNames: ['outcome'],
    registers
  })
  const changes = new Counter({
    name: 'gamenet_board_changes_total',
    help: 'Changes of entries that were published, by kind',
    labelNames: ['change'],
    registers
  })
  const all = new Gauge({ name: 'gamenet_boards', help: 'Boards and lists of boards that are visited', registers })
  const due = new Gauge({
    name: 'gamenet_boards_overdue',
    help: 'Boards and lists of boards that are due and not being visited',
    registers
  })
  for (const outcome of OUTCOMES) visits.inc({ outcome }, 0)
  for (const change of ENTRY_CHANGES) changes.inc({ change }, 0)
  return {
    visited(visit) {
      visits.inc({ outcome: visit.outcome })
      if ('changes' in visit) for (const { changeType } of visit.changes) changes.inc({ change: changeType })
    },
    counted(leases) {
      all.set(leases.all)
      due.set(leases.due)
    }
  }
}
