import { z } from 'zod'

export const USERNAME_LENGTH_MAX = 64

/** Control, format and unpaired surrogate characters, which are invisible in a name. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}]/u

/** The name of a user of the site: 1 to 64 visible characters. */
export const Username = z
  .string()
  .refine(
    (name) => name.length > 0 && [...name].length <= USERNAME_LENGTH_MAX && !UNSEEN.test(name),
    `expected 1 to ${USERNAME_LENGTH_MAX} characters without control or format characters`
  )
  .meta({ description: 'Username', example: 'LuckyBadger' })

/**
 * Marks, blanks, controls, and letters and symbols without ink: the fillers of Hangul, the blank pattern of Braille.
 */
const INK = /[^\p{M}\p{Z}\p{C}\p{Default_Ignorable_Code_Point}\u2800]/u

/** Returns whether a name shows something: one without is nobody's name to a reader. */
export const isVisible = (name: string): boolean => INK.test(name)
