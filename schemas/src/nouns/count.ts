import { z } from 'zod'

/** The largest count that the tables hold (UInt32). */
export const COUNT_MAX = 4_294_967_295

/** A number of people or lobbies. */
export const Count = z.int().min(0).max(COUNT_MAX)
