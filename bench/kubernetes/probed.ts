import { request } from 'node:http';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { temporaryFolder } from '../temporary-folder.ts';
import type { ProbeReport } from './probe.ts';

/**
 * What a replica is started with to be asked from within; its measured time is not to be trusted.
 */
export interface Probe {
  readonly env: Readonly<Record<string, string>>;
  readonly report: () => Promise<ProbeReport>;
  /** Begins a CPU profile; the next call ends it and writes the file. */
  readonly profile: (file: string) => Promise<string>;
}

export const aProbe = (): Probe => {
  const socketPath = join(temporaryFolder(), 'probe');
  const ask = (path: string): Promise<string> =>
    new Promise((settle, fail) => {
      request({ socketPath, path }, (response) => {
        let text = '';
        response
          .setEncoding('utf8')
          .on('data', (chunk: string) => {
            text += chunk;
          })
          .on('end', () => {
            settle(text);
          })
          .on('error', fail);
      })
        .on('error', fail)
        .end();
    });
  return {
    env: {
      BENCH_PROBE: socketPath,
      NODE_OPTIONS: `--import=${pathToFileURL(resolve('node_modules/.sandpool-bench/bench/kubernetes/probe.js')).href}`,
    },
    report: async () => JSON.parse(await ask('/report')) as ProbeReport,
    profile: (file) => ask(`/profile?${encodeURIComponent(file)}`),
  };
};
