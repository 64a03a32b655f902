import { z } from 'zod'

/** A title's id of upstream: 8 hexadecimal digits, accepted in any case and converted to lower case. */
export const TitleId = z
  .string()
  .regex(/^[0-9a-fA-F]{8}$/, 'expected 8 hexadecimal digits')
  .toLowerCase()
  .meta({ description: 'Title id, 8 hexadecimal digits', example: '4d530064' })
