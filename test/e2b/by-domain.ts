import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { anAuthority } from './an-authority.ts';
import { tlsWay } from './ways.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';

export interface TriedStep {
  readonly of: string;
  readonly step: string;
  readonly why: string | null;
}

const PROGRAM = fileURLToPath(new URL('steps-by-domain.mts', import.meta.url));
const DOMAIN = 'sandboxes.test';

/**
 * Goes through the steps of a suite with the packages as they are when they know E2B_DOMAIN and a key alone: by
 * names, over TLS of a local authority. Undefined where there is no openssl.
 */
export const stepsByDomain = async (
  suite: 'services' | 'interpreter',
  { url, key }: { readonly url: string; readonly key: string },
): Promise<readonly TriedStep[] | undefined> => {
  const authority = anAuthority([`*.${DOMAIN}`]);
  if (!authority) return undefined;
  const way = await tlsWay(url, authority);
  try {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import', 'tsx', PROGRAM, suite],
      {
        timeout: 2 * NEVER_COMES_MS, // they are many
        env: {
          PATH: process.env['PATH'],
          NODE_OPTIONS: process.env['NODE_OPTIONS'], // by which script/newer-sdks has other packages
          E2B_DOMAIN: `${DOMAIN}:${way.port}`,
          E2B_API_KEY: key,
          NODE_EXTRA_CA_CERTS: authority.caFile,
        },
      },
    );
    return stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as TriedStep);
  } finally {
    way.stop();
    rmSync(authority.folder, { recursive: true });
  }
};
