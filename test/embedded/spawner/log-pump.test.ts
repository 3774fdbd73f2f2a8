import { expect } from 'chai';
import { spawn } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LogPump, pipesIn } from '../../../src/embedded/spawner/sandbox/log-pump.ts';
import { Watcher } from '../../../src/embedded/spawner/watcher.ts';
import { buildLauncher, LAUNCHER } from '../../support/harness/a-spawned-driver.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { killIfAlive } from '../../support/harness/kill-if-alive.ts';

const LIMITS = { fileBytes: 1 << 20, totalBytes: 1 << 28, retentionMs: 3_600_000 };
const log = { info() {}, warn() {}, error() {} };

describe('the log pump', function () {
  let folder: string;
  let former: string;
  let watcher: Watcher;
  let pump: LogPump;

  before(() => buildLauncher());
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-logs-'));
    former = join(folder, 'former', 'launcher');
    mkdirSync(join(folder, 'former'));
    copyFileSync(LAUNCHER, former);
    watcher = new Watcher(LAUNCHER, log);
    watcher.start();
    pump = new LogPump({ ...{ launcherPath: LAUNCHER, folder: logs(), watcher }, log });
  });
  afterEach(async () => {
    await pump.release(false);
    for (const { pid } of keepers()) killIfAlive(pid);
    watcher.stop();
    await eventually(() => keepers().length === 0, 'nobody keeps them');
    rmSync(folder, { recursive: true, maxRetries: 5 });
  });

  const logs = (): string => join(folder, 'logs');
  /** Those that live, by the program that they run. */
  const keepers = (): readonly { readonly pid: number; readonly program: string }[] =>
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((pid) => {
        try {
          const [, mode, of] = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0');
          return mode === 'logs' && of === logs()
            ? [{ pid: Number(pid), program: readlinkSync(`/proc/${pid}/exe`) }]
            : [];
        } catch {
          return [];
        }
      });
  /** As a spawner of a version before started it, whose launcher is not at the path of this one. */
  const aFormerKeeper = async (): Promise<void> => {
    const args = [logs(), LIMITS.fileBytes, LIMITS.totalBytes, LIMITS.retentionMs / 1_000];
    const stdio = ['pipe', 'ignore', 'ignore'] as const;
    spawn(former, ['logs', ...args.map(String)], { stdio: [...stdio], detached: true, env: {} });
    await eventually(() => keepers().length === 1, 'a former one keeps them');
  };

  for (const [where, remove] of [
    ['elsewhere', false],
    ['removed', true],
  ] as const)
    it(`is replaced if its launcher is of an older version, and ${where}`, async () => {
      mkdirSync(pipesIn(logs()), { recursive: true });
      await aFormerKeeper();
      if (remove) rmSync(former);
      const [before] = keepers();
      pump.use(LIMITS);
      await eventually(
        () => keepers().some(({ program }) => program === LAUNCHER),
        'one of this version keeps them',
      );
      await eventually(() => keepers().length === 1, 'and it alone');
      expect(before?.program).to.equal(remove ? `${former} (deleted)` : former);
      expect(keepers()[0]?.program).to.equal(LAUNCHER);
    });
});
