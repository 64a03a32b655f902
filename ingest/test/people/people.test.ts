import { nameHashSql, PEOPLE_LOCK } from '@gamenet/schemas'
import { Registry } from 'prom-client'
import { test } from 'tap'
import { createPeople, sealKeys } from '../../src/index.js'
import { onEachWriteSide } from '../outbox/write-sides.js'

onEachWriteSide((name, open, options) => {
  const emptied = async () => {
    const { postgres } = open()
    await postgres.query('TRUNCATE person, erasure, erasure_salt')
    return postgres
  }

  test(`${name}: a person has one seal, for any spelling and any number of concurrent requests`, options, async (t) => {
    const writes = await emptied()
    const sides = [writes, open().another(t), open().another(t)]
    const asked = await Promise.all(
      sides.map((side) =>
        createPeople({ writes: async () => side, registry: new Registry() }).seals(['Ann', 'ANN', 'ａｎｎ', 'Bob'])
      )
    )
    const [first] = asked
    t.same([...(first?.keys() ?? [])].sort(), ['ann', 'bob'])
    for (const seals of asked) t.same(seals.get('ann'), first?.get('ann'))
    t.same(
      [...(first?.values() ?? [])].map(({ key }) => key.length),
      [32, 32]
    )
    const ids = [...(first?.values() ?? [])].map(({ id }) => id)
    t.equal(new Set(ids).size, 2)
    const keys = await sealKeys(writes, [...ids, 999_999_999])
    t.same([...keys.keys()].sort(), ids.sort())
    t.same(keys.get(ids[0] ?? 0), [...(first?.values() ?? [])].find(({ id }) => id === ids[0])?.key)
  })

  test(`${name}: an erasure under way is not reverted by an earlier request`, options, async (t) => {
    const writes = await emptied()
    const people = createPeople({ writes: async () => open().another(t), registry: new Registry() })
    await people.seals(['Ann'])
    let asking: Promise<unknown> = Promise.resolve()
    await writes.transaction(async (transaction) => {
      await transaction.query('SELECT pg_advisory_xact_lock($1)', [PEOPLE_LOCK])
      await transaction.query(`INSERT INTO erasure_salt (salt) VALUES ('salt')`)
      await transaction.query(`DELETE FROM person AS p WHERE p.user_key = 'ann'`)
      asking = people.seals(['Bob', 'Cleo'])
      await transaction.query(
        `INSERT INTO erasure (name_hash, erased_at)
         SELECT ${nameHashSql('n.user_key')}, now() FROM erasure_salt AS s, unnest($1::text[]) AS n (user_key)`,
        [['ann', 'bob']]
      )
    })
    t.same([...((await asking) as Map<string, unknown>).keys()], ['cleo'])
    t.same([...(await people.seals(['Ann', 'Bob', 'Cleo'])).keys()], ['cleo'])
  })
})
