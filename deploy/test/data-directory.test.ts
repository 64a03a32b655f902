import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { runAsOther } from '@gamenet/engines/testing'
import { type Test, test } from 'tap'
import { claimDataDirectory, replaceFile } from '../src/data-directory/data-directory.js'
import { fileFailure } from '../src/data-directory/file-failure.js'
import { stateFrom } from '../src/data-directory/process-state.js'

const VERSIONS = { program: '0.9.0', engines: { chdb: '3.4.0' } }

/** The owner of a directory whose process has ended. */
const STALE = { pid: 2 ** 30, startedAt: '1', purpose: 'run', operatorUrl: null, isSuspect: false }

test('a first start that was interrupted while it wrote its format leaves a usable directory', async (t) => {
  const path = t.testdir({ 'format.json': '', 'service.json': '{"pid":' })
  const directory = await claimDataDirectory(path, VERSIONS)
  t.match(JSON.parse(await readFile(join(path, 'format.json'), 'utf8')), { format: Number, program: '0.9.0' })
  await directory.release()
  await writeFile(join(path, 'format.json'), '{"form')
  await t.rejects(claimDataDirectory(path, VERSIONS), /cannot be read/, 'a damaged directory is not claimed')
})

test('a data directory and its subdirectories are made private to their user', async (t) => {
  const mode = async (...path: string[]) => ((await stat(join(...path))).mode & 0o777).toString(8)
  const fresh = join(t.testdir(), 'new', 'data')
  await (await claimDataDirectory(fresh, VERSIONS)).release()
  t.equal(await mode(fresh), '700')
  for (const name of ['log', 'tables', 'mine']) {
    await mkdir(join(fresh, name))
    await chmod(join(fresh, name), 0o755)
  }
  await chmod(fresh, 0o755)
  await (await claimDataDirectory(fresh, VERSIONS)).release()
  t.equal(await mode(fresh), '700')
  t.equal(await mode(fresh, 'log'), '700')
  t.equal(await mode(fresh, 'tables'), '700')
  t.equal(await mode(fresh, 'mine'), '755', 'other directories stay as they are')
  await chmod(fresh, 0o1777)
  await (await claimDataDirectory(fresh, VERSIONS)).release()
  t.equal((await stat(fresh)).mode & 0o7777, 0o1777, 'a directory that is shared like /tmp stays so')
})

test('a start waits for a killed process, and is refused while one runs', async (t) => {
  const path = join(t.testdir(), 'data')
  const child = await start(t, process.execPath, claiming(path))
  await t.rejects(claimDataDirectory(path, VERSIONS), { message: new RegExp(`in use by process ${child.pid}`) })
  child.kill('SIGKILL')
  await (await claimDataDirectory(path, VERSIONS)).release()

  // `sleep` never collects the exit status of its child, which stays a zombie.
  await start(t, 'sh', ['-c', '"$@" & exec sleep 60', 'sh', process.execPath, ...claiming(path)])
  const { pid } = JSON.parse(await readFile(join(path, 'service.json'), 'utf8'))
  process.kill(pid, 'SIGKILL')
  await (await claimDataDirectory(path, VERSIONS)).release()
})

test('a start waits for a command, and names one that takes long', async (t) => {
  const path = join(t.testdir(), 'data')
  const child = await start(t, process.execPath, claiming(path, 'command'))
  const refused = claimDataDirectory(path, VERSIONS, 'run', 0)
  await t.rejects(refused, { message: `in use by process ${child.pid}, which runs a command; stop that one` })
  const starting = claimDataDirectory(path, VERSIONS)
  // It looks at the holder before the process of a command that does nothing else has started.
  await promisify(execFile)(process.execPath, ['--version'])
  child.kill('SIGKILL')
  await (await starting).release()
})

test('a process that is not visible here, as in another container, keeps its directory', async (t) => {
  const path = join(t.testdir(), 'data')
  const child = await start(t, process.execPath, claiming(path))
  const owner = JSON.stringify(STALE)
  await writeFile(join(path, 'service.json'), owner)
  const newer = { program: '9.0.0', engines: { chdb: '9.0.0' } }
  const claimed = claimDataDirectory(path, newer, 'run', 0)
  await t.rejects(claimed, /in use by another process, perhaps in another container; stop that/)
  t.equal(await readFile(join(path, 'service.json'), 'utf8'), owner)
  t.match(JSON.parse(await readFile(join(path, 'format.json'), 'utf8')), VERSIONS)
  child.kill('SIGKILL')
  await once(child, 'exit')
  await (await claimDataDirectory(path, newer)).release()
})

test('one of several claims at the same time succeeds', async (t) => {
  for (let round = 0; round < 10; round += 1) {
    const path = join(t.testdir(), 'data')
    const isStale = round % 2 === 1
    if (isStale) {
      await mkdir(path)
      await writeFile(join(path, 'service.json'), JSON.stringify(STALE))
    }
    const claims = await Promise.allSettled(Array.from({ length: 4 }, () => claimDataDirectory(path, VERSIONS)))
    const owners = claims.flatMap((claim) => (claim.status === 'fulfilled' ? [claim.value] : []))
    const reasons = claims.flatMap((claim) => (claim.status === 'rejected' ? [String(claim.reason.message)] : []))
    t.equal(owners.length, 1)
    t.ok(
      reasons.every((reason) => / is in use by /.test(reason)),
      reasons.join('\n')
    )
    for (const owner of owners) await owner.release()
    t.same(await readdir(path), isStale ? ['format.json', 'service.json'] : ['format.json'])
  }
})

test('a file that cannot be replaced leaves no draft', async (t) => {
  const path = t.testdir({ 'service.json': { folder: '' } })
  await t.rejects(replaceFile(join(path, 'service.json'), '{}'))
  t.same(await readdir(path), ['service.json'])
})

const asRoot = { skip: process.getuid?.() === 0 ? false : 'only root can give files to another user' }

test('root operates on the data of another user only as a service', asRoot, async (t) => {
  const path = t.testdir()
  await chown(path, 1234, 1234)
  for (const purpose of ['command', 'restore'] as const)
    await t.rejects(claimDataDirectory(path, VERSIONS, purpose), /belong to user 1234.*sudo -u '#1234'.*chown -R root/)
  t.same(await readdir(path), [])
  await (await claimDataDirectory(path, VERSIONS)).release()
  await (await claimDataDirectory(path, VERSIONS, 'command')).release()
  await chown(join(path, 'format.json'), 1234, 1234)
  await t.rejects(claimDataDirectory(path, VERSIONS, 'command'), /belong to user 1234/)
})

test('a start that cannot open a file names it, its owner and the repair', asRoot, async (t) => {
  // The other user cannot reach the fixtures, which may be in a private folder in memory.
  const path = await mkdtemp(join(tmpdir(), 'gamenet-denied-'))
  t.teardown(() => rm(path, { recursive: true }))
  await mkdir(join(path, 'log'))
  await mkdir(join(path, 'writes'))
  await writeFile(join(path, 'log', 'data.mdb'), '')
  for (const name of ['.', 'log', 'log/data.mdb', 'writes']) await chown(join(path, name), 1234, 1234)
  await mkdir(join(path, 'datasets'))
  await mkdir(join(path, 'tables', 'part'), { recursive: true })
  await mkdir(join(path, 'lost+found'), { mode: 0o700 })
  for (const name of ['tables/part/data.bin', 'datasets/2026-03.parquet', 'service.json'])
    await writeFile(join(path, name), '')
  for (const name of ['tables', 'tables/part', 'tables/part/data.bin', 'datasets', 'datasets/2026-03.parquet'])
    await chown(join(path, name), 1234, 1234)
  for (const name of ['service.json']) await chown(join(path, name), 1234, 1234)
  const claimed = async () => {
    const script = `
      const [{ claimDataDirectory }] = loaded
      await claimDataDirectory(${JSON.stringify(path)}, ${JSON.stringify(VERSIONS)}).then(
        () => console.log('claimed'), (error) => console.log(error.message))`
    return (
      await runAsOther([new URL('../src/data-directory/data-directory.js', import.meta.url)], script)
    ).stdout.trim()
  }
  t.equal(await claimed(), 'claimed')
  await chmod(join(path, 'log', 'data.mdb'), 0o400)
  t.equal(await claimed(), 'claimed', 'a read-only file of the user')
  for (const name of ['log/data.mdb', 'tables/part/data.bin', 'datasets/2026-03.parquet', 'format.json']) {
    await chown(join(path, name), 0, 0)
    await chmod(join(path, name), 0o600)
    t.equal(
      await claimed(),
      `${join(path, name)} belongs to user 0 and has the mode 600; this process, of user 1234, cannot open it. Repair: chown -R 1234 ${path}, as root; or run this as that user (sudo -u '#0').`
    )
    await chown(join(path, name), 1234, 1234)
  }
  await chmod(join(path, 'writes'), 0o500)
  t.match(
    await claimed(),
    /^.*writes belongs to user 1234 and has the mode 500; .* Repair: chmod -R u\+rwX .*writes\.$/
  )
  await chmod(join(path, 'writes'), 0o700)
  await chown(path, 0, 0)
  t.match(
    await claimed(),
    /^The data directory .* cannot be written\. .* belongs to user 0 and has the mode 700; .* chown -R 1234 /
  )
})

test('an entry of the wrong kind is named, with what to do', async (t) => {
  const path = t.testdir({ 'kept.json': '{}' })
  const refusal = async () => await claimDataDirectory(path, VERSIONS).then((claimed) => claimed.release(), String)
  for (const name of ['service.json', 'format.json', 'restoring.json', 'erasures.json']) {
    await rm(join(path, name), { force: true })
    await mkdir(join(path, name))
    t.match(await refusal(), `${join(path, name)} is a folder; expected a file. Move the folder away;`)
    await rm(join(path, name), { recursive: true })
    await writeFile(join(path, name), name === 'restoring.json' ? '/b' : '')
    if (name === 'restoring.json')
      t.match(await refusal(), /half-restored backup; restore it again: gamenet restore \/b/)
    else t.equal(await refusal(), undefined, `an empty ${name}`)
    await rm(join(path, name), { force: true })
  }
  for (const name of ['log', 'tables', 'writes', 'uploads', 'spool', 'datasets']) {
    await writeFile(join(path, name), '')
    t.match(await refusal(), `${join(path, name)} is a file; expected a folder. Move the file away`)
    await rm(join(path, name))
    await symlink('/none/of/this', join(path, name))
    t.match(await refusal(), `${join(path, name)} is a link to /none/of/this, which is missing. Mount its disk`)
    await rm(join(path, name))
  }
  t.equal(await refusal(), undefined)
})

test('errors of files get a sentence, whatever wraps them', async (t) => {
  const path = t.testdir({ log: {}, file: '' })
  const sentenceOf = (code: string, at: string) =>
    fileFailure(new Error('wrapped', { cause: Object.assign(new Error(code), { code, path: at }) }), path)?.message
  t.match(sentenceOf('EROFS', '/mnt/x'), /^The file system of \/mnt\/x is mounted read-only\. .* another path\.$/)
  t.match(sentenceOf('EROFS', path), /^The file system of .* is mounted read-only, .*fsck/)
  t.match(sentenceOf('EIO', '/mnt/x'), /^The disk cannot read or write \/mnt\/x .*gamenet verify/)
  t.match(sentenceOf('EMFILE', '/mnt/x'), /ulimit -n/)
  t.match(sentenceOf('EISDIR', join(path, 'log')), /log is a folder; expected a file/)
  t.match(sentenceOf('ENOTDIR', join(path, 'file', 'below')), `${join(path, 'file')} is a file; expected a folder`)
  await symlink(join('file', 'below'), join(path, 'link'))
  t.match(sentenceOf('ENOTDIR', join(path, 'link')), `${join(path, 'file')} is a file; expected a folder`)
  t.equal(sentenceOf('ENOENT', '/mnt/x'), undefined)
  t.equal(fileFailure(new Error('another'), path), undefined)
})

test('a file that the user of a command cannot read is named', asRoot, async (t) => {
  const path = await mkdtemp(join(tmpdir(), 'gamenet-denied-'))
  t.teardown(() => rm(path, { recursive: true }))
  await chmod(path, 0o755)
  await writeFile(join(path, 'secret.csv'), '', { mode: 0o600 })
  const script = `
    const { stdin: input, stdout: output, stderr: errors } = process
    const args = ['import', 'network-count', ${JSON.stringify(join(path, 'secret.csv'))}]
    const environment = { DATA_DIR: ${JSON.stringify(join(path, 'data'))} }
    process.exit(await loaded[0].runProgram({ args, environment, input, output, errors }))`
  // Nothing is imported after the failure: the other user may not be able to read the program.
  const program = new URL('../src/program.js', import.meta.url)
  const failed = await runAsOther([program], script).catch((error: unknown) => error)
  t.match(failed, {
    code: 1,
    stderr: /^.*secret.csv belongs to user 0 and has the mode 600; .* Give another path, or run this as .*\n$/
  })
})

test('a process is dying when it is killed, exiting, or a zombie whose threads still run', async (t) => {
  const stat = (state: string, flags: number) => `7 (a) b) ${state} 1 7 7 0 -1 ${flags} 0`
  const status = (own: string, shared: string) =>
    `Name:\ta\nSigPnd:\t${own}\nShdPnd:\t${shared}\nSigBlk:\t0000000000000100\n`
  const NONE = '0000000000000000'
  const KILL = '0000000000000100'
  t.equal(stateFrom(stat('S', 0x400000), status(NONE, NONE), 9), 'running')
  t.equal(stateFrom(stat('S', 0x400000), status(NONE, '0000000000004000'), 9), 'running', 'SIGTERM alone')
  t.equal(stateFrom(stat('D', 0x400000), status(KILL, NONE), 9), 'dying')
  t.equal(stateFrom(stat('R', 0x400000), status(NONE, KILL), 9), 'dying')
  t.equal(stateFrom(stat('R', 0x400004), status(NONE, NONE), 1), 'dying')
  t.equal(stateFrom(stat('Z', 0x40000c), status(NONE, NONE), 3), 'dying')
  t.equal(stateFrom(stat('Z', 0x40000c), status(NONE, NONE), 1), 'ended')
  t.equal(stateFrom('', '', 0), 'running', 'where there is no /proc')
})

/** Arguments of a Node that claims a directory and keeps it. It touches memory, which the kernel takes some time to free. */
function claiming(path: string, purpose = 'run'): readonly string[] {
  const module = new URL('../src/data-directory/data-directory.js', import.meta.url)
  const script = `
    const { claimDataDirectory } = await import(${JSON.stringify(module.href)})
    await claimDataDirectory(${JSON.stringify(path)}, ${JSON.stringify(VERSIONS)}, ${JSON.stringify(purpose)})
    globalThis.memory = Buffer.alloc(200e6, 1)
    console.log('claimed')
    setInterval(() => undefined, 1000)`
  return ['--input-type=module', '-e', script]
}

async function start(t: Test, command: string, args: readonly string[]) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return child
}
