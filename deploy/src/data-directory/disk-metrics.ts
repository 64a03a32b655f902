import { Gauge, type Registry } from 'prom-client'
import type { Disk } from './disk.js'
import type { GuardedDisk } from './disk-guard.js'
import { USED_PARTS } from './disk-usage.js'

/** Adds metrics of the disk, measured when they are collected. */
export function addDiskMetrics(registry: Registry, disk: Disk): void {
  const ofDisks = (name: string, help: string, figure: (disk: GuardedDisk) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['path'],
      registers: [registry],
      async collect() {
        for (const each of await disk.look()) this.set({ path: each.path }, figure(each))
      }
    })
  ofDisks(
    'gamenet_disk_free_bytes',
    'Bytes that may still be written to a disk of the data directory',
    ({ freeBytes }) => freeBytes
  )
  ofDisks('gamenet_disk_size_bytes', 'Size of a disk of the data directory', ({ sizeBytes }) => sizeBytes)
  ofDisks(
    'gamenet_disk_low',
    'Alarm: 1 while less than DISK_FREE_MIN_BYTES is free, which stops imports and merges, and while writes fail on ' +
      'a full disk',
    ({ isLow, isFull }) => (isLow || isFull ? 1 : 0)
  )
  new Gauge({
    name: 'gamenet_disk_used_bytes',
    help: 'Bytes used by the log, the tables and the write side',
    labelNames: ['part'],
    registers: [registry],
    async collect() {
      const used = await disk.used()
      for (const part of USED_PARTS) {
        const bytes = used[part]
        if (bytes !== null) this.set({ part }, bytes)
      }
    }
  })
}
