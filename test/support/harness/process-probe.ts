import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

/** Runs before all else in each thread of a Node process, and tells whoever connects. */
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
  /**
   * What it holds once all garbage is collected. Its resident memory tells besides how much garbage
   * is about, which is more where the process waits for a processor.
   */
  readonly heldBytes: number;
  /** The longest that its event loop stood still since it was last asked, for whatever reason. */
  readonly stoodMs: number;
}

export interface ProcessProbe {
  /** For the Node process to be looked at. */
  readonly env: Readonly<Record<string, string>>;
  of(pid: number): Promise<Probed>;
  remove(): void;
}

/** Looks into another Node process. */
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
