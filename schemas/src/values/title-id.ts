import { z } from 'zod'

/** A title's id as upstream gives it: 8 hexadecimal digits, any case accepted, lower case kept. */
export const TitleId = z
  .string()
  .regex(/^[0-9a-fA-F]{8}$/, 'expected 8 hexadecimal digits')
  .toLowerCase()
  .meta({ description: 'Title id, 8 hexadecimal digits', example: '4d530064' })
