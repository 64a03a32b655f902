import { test } from 'tap'
import { z } from 'zod'
import { TitleCounted, TitleDescribed } from '../src/index.js'

test('the fault of a value says what was expected', async (t) => {
  const textOf = (schema: z.ZodType, value: unknown) => schema.safeParse(value).error?.issues[0]?.message
  const cases: [z.ZodType, unknown, string][] = [
    [TitleCounted.shape.online, -1, 'expected at least 0'],
    [TitleCounted.shape.online, 2 ** 40, 'expected at most 4294967295'],
    [TitleCounted.shape.online, 1.5, 'expected a whole number'],
    [TitleCounted.shape.online, '1', 'expected a number'],
    [TitleDescribed.shape.name, 'x'.repeat(501), 'expected at most 500 characters'],
    [TitleDescribed.shape.name, 5, 'expected a text'],
    [TitleDescribed.shape.releaseDate, 'TBA', 'expected a date as YYYY-MM-DD'],
    [TitleDescribed.shape.image, 'x', 'expected an address that begins with http:// or https://'],
    [z.enum(['new', 'removed']), 'moved', 'expected new, removed'],
    [z.strictObject({}), { x: 1 }, 'expected no x'],
    [z.string().regex(/^a$/), 'b', 'expected a text of the form /^a$/'],
    [z.string().regex(/^a$/, 'its own text'), 'b', 'its own text']
  ]
  for (const [schema, value, text] of cases) t.equal(textOf(schema, value), text)
})
