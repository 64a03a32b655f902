import { test } from 'tap'
import { provesBackups } from './service/backups.js'

test('a backup of a service at work holds all that was acknowledged, and answers alike elsewhere', (t) =>
  provesBackups(t, {
    rebuilds: false,
    restoreKills: [],
    backupKills: [0.4],
    seed: 20_260_314,
    startsAgain: false
  }))
