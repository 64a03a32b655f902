import { spawn } from 'node:child_process'
import { startHttpLoad } from './dist/bench/http-load.js'
const env = { PATH: process.env.PATH, HOME: process.env.HOME, DATA_DIR: '/work/iso/prof/data', PORT: '0', OPERATOR_PORT: '0', AUTH_URL: 'http://127.0.0.1:9', UPSTREAM_URL: 'http://127.0.0.1:9', SCRAPE_NETWORK_SECONDS: '0', SCRAPE_GAMES_SECONDS: '0', SCRAPE_PLAYERS_SECONDS: '0', SCRAPE_MATCHES_SECONDS: '0', SCRAPE_BOARDS_SECONDS: '0' }
const child = spawn(process.execPath, ['--cpu-prof', '--cpu-prof-dir=/work/iso/prof', 'deploy/gamenet.cjs', 'start', '--json'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
const line = await new Promise(r => child.stdout.once('data', d => r(String(d))))
const { apiUrl } = JSON.parse(line)
const path = process.argv[2] ?? '/api/achievements'
const a = await fetch(apiUrl + path); console.log(a.status, (await a.arrayBuffer()).byteLength, Object.fromEntries(a.headers))
const load = startHttpLoad()
for (let i = 0; i < 4; i++) console.log(await load.run({ port: Number(new URL(apiUrl).port), path, headers: {'Accept-Encoding':'identity'}, connections: 32, ms: 3000, status: 200 }))
await load.stop()
child.kill('SIGTERM'); await new Promise(r => child.once('close', r))
