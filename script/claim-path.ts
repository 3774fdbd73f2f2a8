/**
 * Prints the files of src/ that one claim passes: those with a function that ran in each of several
 * claims. The server's events bound each measurement: if the client were slow, later work such as
 * writing the audit would count.
 */
import { subscribe } from 'node:diagnostics_channel';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Session, type Profiler } from 'node:inspector';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../src/daemon/config/config.ts';
import { createDaemon } from '../src/daemon/create-daemon.ts';
import { endAll } from '../src/daemon/end-all.ts';
import { silentLog } from '../src/contracts/log.ts';

const SRC = fileURLToPath(new URL('../src', import.meta.url));
const CLAIMS = 5;
const DEADLINE_MS = 60_000;

const claimPath = async (): Promise<readonly string[]> => {
  const dataDir = mkdtempSync(join(tmpdir(), 'sandpool-claim-path-'));
  const argvOptions = { dataDir, listen: '127.0.0.1:0', metricsListen: 'none', isolation: 'none' };
  const { config } = loadConfig({ argvOptions, env: {} });
  const daemon = await createDaemon(config, {
    log: { ...silentLog, level: 'error' },
    replica: 'claim-path',
    stopped: new AbortController().signal,
  });
  const { address } = await daemon.start();
  const session = new Session();
  session.connect();
  try {
    const key = readFileSync(join(dataDir, 'keys', 'tenant.key'), 'utf8').trim();
    const claim = async (): Promise<boolean> => {
      const response = await fetch(`${address}/sandboxes`, {
        method: 'POST',
        headers: { 'SERVICE-API-KEY': key, 'Content-Type': 'application/json' },
        body: JSON.stringify({ poolName: 'default' }),
      });
      await response.arrayBuffer();
      return response.status === 201;
    };
    const until = performance.now() + DEADLINE_MS;
    while (!(await claim())) {
      if (performance.now() > until) throw new Error('no instance became idle in time');
      await pause(100);
    }
    session.post('Profiler.enable');
    session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    let result: readonly Profiler.ScriptCoverage[] = [];
    const measure = (): void => {
      session.post('Profiler.takePreciseCoverage', (_, taken) => {
        result = taken.result;
      });
    };
    subscribe('http.server.request.start', measure);
    let ended: () => void;
    subscribe('http.server.response.finish', () => {
      setImmediate(() => {
        measure();
        ended();
      });
    });
    let common: Set<string> | undefined;
    for (let claims = 0; claims < CLAIMS;) {
      const measured = new Promise<void>((resolve) => {
        ended = resolve;
      });
      const claimed = await claim();
      await measured;
      if (!claimed) {
        if (performance.now() > until) throw new Error('no instance became idle in time');
        await pause(100);
        continue;
      }
      const passed = result
        .filter(({ url, functions }) => url.includes('/src/') && functions.some(hasRun))
        .map(({ url }) => relative(SRC, fileURLToPath(url.split('?')[0] ?? '')))
        .filter((path) => !path.startsWith('..'));
      common = new Set(passed.filter((path) => common?.has(path) ?? true));
      claims += 1;
    }
    return [...(common ?? [])].sort();
  } finally {
    session.disconnect();
    await daemon.stop();
    await endAll(argvOptions, silentLog);
    rmSync(dataDir, { recursive: true, force: true });
  }
};

const hasRun = ({ ranges }: { readonly ranges: readonly { readonly count: number }[] }): boolean =>
  (ranges[0]?.count ?? 0) > 0;

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const files = await claimPath();
  for (const file of files) console.log(file);
  console.log(`${files.length} files`);
}
