import { until } from '@gamenet/engines/testing'
import { DataVersions } from '../src/answers/data-versions.js'
import { onPostgres, openPeopleApi } from './people-api.js'
import { TestTables } from './support/test-app.js'

onPostgres(
  'every process is notified of edits and ratings, and treats everything as changed when it starts to listen',
  async (t, postgres) => {
    const failures: unknown[] = []
    const versions = new DataVersions({ changes: new TestTables().stored, onFailure: (error) => failures.push(error) })
    const read = (projection: string, key: string) => versions.versionOf({ projection, key })
    const unfollow = versions.follow(postgres)
    await until(() => read('profile', 'anybody') > 0 && read('rating', 'anybody') > 0)
    const elsewhere = await openPeopleApi(t, postgres)
    const ann = elsewhere.signIn('Ann')
    elsewhere.see('Bob')
    const before = { profile: read('profile', 'ann'), rating: read('rating', 'bob'), other: read('rating', 'ann') }
    await elsewhere.rate('Bob', ann, { stars: 3 })
    await until(() => read('profile', 'ann') > before.profile && read('rating', 'bob') > before.rating)
    t.equal(read('rating', 'ann'), before.other)
    t.equal(read('rating', 'anybody'), before.other)
    await postgres.query("SELECT pg_notify('gamenet_changed', 'nonsense')")
    await until(() => failures.length > 0)
    t.match(String(failures[0]), /gamenet_changed sent nonsense/)
    await unfollow()
  }
)
