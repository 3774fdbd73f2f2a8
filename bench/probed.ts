import { request, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import type { Bench } from './figure.ts';

export interface Probe {
  /** For the measured daemon. */
  readonly env: Readonly<Record<string, string>>;
  /** Bytes, after a collection. */
  readonly heap: () => Promise<number>;
}

export const aProbe = ({ folder }: Bench): Probe => {
  const socketPath = join(folder, `probe-${performance.now()}`);
  const probe = pathToFileURL(resolve('node_modules/.sandpool-bench/bench/probe.js'));
  return {
    env: { BENCH_PROBE: socketPath, NODE_OPTIONS: `--import=${probe.href}` },
    heap: async () => {
      const [answer] = (await once(request({ socketPath }).end(), 'response')) as [IncomingMessage];
      return Number(await text(answer));
    },
  };
};
