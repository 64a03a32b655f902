/*
 * Names in the table `checkpoint`: the projector stores how far the loader and the projections have come, and every reader that
 * must not read past that, or waits for it, asks by the same names.
 */

/** Name of the loader's checkpoint of a topic. */
export function loadCheckpoint(topic: string): string {
  return `load:${topic}`
}

/** Name of a projection's checkpoint. */
export function projectionCheckpoint(projection: string): string {
  return `project:${projection}`
}
