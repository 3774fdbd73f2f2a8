import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

/** Loaded first in each thread of a Node process; answers connections. */
const PROBE = `
import { createServer } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';
if (isMainThread) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  createServer((socket) => {
    const stoodMs = delay.max / 1e6;
    collect();
    setImmediate(() => {
      collect();
      const { heapUsed, external } = process.memoryUsage();
      delay.reset();
      socket.end(JSON.stringify({ heldBytes: heapUsed + external, stoodMs }));
    });
  }).listen(process.env.PROCESS_PROBE + process.pid).unref();
}
`;

export interface Probed {
  /** Heap after garbage collection; resident memory would include garbage. */
  readonly heldBytes: number;
  /** Longest stall of its event loop since the last call. */
  readonly stoodMs: number;
}

export interface ProcessProbe {
  readonly env: Readonly<Record<string, string>>;
  of(pid: number): Promise<Probed>;
  remove(): void;
}

/** Inspects another Node process. */
export const processProbe = (): ProcessProbe => {
  const folder = mkdtempSync(join(tmpdir(), 'sandpool-probe-'));
  return {
    env: {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(PROBE)}`,
      PROCESS_PROBE: `${folder}/`,
    },
    of: async (pid) => JSON.parse(await text(connect(join(folder, String(pid))))) as Probed,
    remove: () => {
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
