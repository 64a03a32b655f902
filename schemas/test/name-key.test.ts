import fc from 'fast-check'
import { test } from 'tap'
import { nameKey } from '../src/index.js'

test('names that differ in case, width or composition have one key', async (t) => {
  t.equal(nameKey('HALO 2'), nameKey('halo 2'))
  t.equal(nameKey('Ｈalo'), nameKey('halo'))
  t.equal(nameKey('Pok\u00e9'), nameKey('Poke\u0301'))
  t.not(nameKey('Halo'), nameKey('Halo 2'))
})

test('the key of a key is the same key', async (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (name) => t.equal(nameKey(nameKey(name)), nameKey(name))),
    { seed: 1 }
  )
})
