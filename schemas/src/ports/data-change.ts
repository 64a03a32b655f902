/**
 * How far below the newest version of `data_change` readers look for changes, in versions (microseconds). With several
 * projectors a change can become visible after a change with a higher version. A projector that is late by more than
 * half of it announces the change with a newer version.
 */
export const CHANGE_OVERLAP_VERSIONS = 60_000_000
