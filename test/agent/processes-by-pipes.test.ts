import { spawn } from 'node:child_process';
import { chmodSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { v7 } from 'uuid';
import { InstanceGone } from '../../src/contracts/sandbox-driver.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import type { AgentWay } from '../../src/k8s/processes/process-calls.ts';
import { InstanceProcesses } from '../../src/k8s/processes/instance-processes.ts';
import { builtAgent } from '../../local-cluster/real-node/agent-image.ts';
import { processesSuite } from '../contracts/processes.ts';
import { buildLauncher } from '../support/harness/a-spawned-driver.ts';

const ID = 'a';
/** Whom a suite that runs as root takes for the sandbox's user. */
const NOBODY = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** Begins the agent on this machine, as a Pod's container does. */
const openAgent = (launcher: string): Promise<AgentWay> => {
  const { stdin, stdout } = spawn(launcher, ['call'], {
    ...NOBODY,
    env: { PATH: '/usr/bin:/bin' },
    cwd: '/',
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const way = Duplex.from({ readable: stdout, writable: stdin });
  return Promise.resolve(Object.assign(way, { hold: () => undefined }));
};

processesSuite('an agent by pipes', async () => {
  buildLauncher();
  const folder = mkdtempSync(join(tmpdir(), 'sandpool-pipes-'));
  chmodSync(folder, 0o755);
  const launcher = join(folder, 'launcher');
  copyFileSync(builtAgent(), launcher);
  const pod = { namespace: 'n', name: 'p', uid: v7(), container: 'c' };
  return {
    processes: new InstanceProcesses({
      enter: (id, way) =>
        id === ID ? way([pod]) : Promise.reject(new InstanceGone('there is no such sandbox')),
      openAgent: () => openAgent(launcher),
      pause: (ms) => sleep(ms, true),
      clock: systemClock(),
    }),
    instance: () => Promise.resolve(ID),
    close: () => {
      rmSync(folder, { recursive: true });
      return Promise.resolve();
    },
  };
});
