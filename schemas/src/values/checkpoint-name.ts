/*
 * Names in the table `checkpoint`: the projector stores the positions of the loader and of projections, and readers
 * that wait for a position, or must not read beyond it, use the same names.
 */

/** Name of the loader's checkpoint of a topic. */
export const loadCheckpoint = (topic: string): string => `load:${topic}`

/** Name of a projection's checkpoint. */
export const projectionCheckpoint = (projection: string): string => `project:${projection}`
