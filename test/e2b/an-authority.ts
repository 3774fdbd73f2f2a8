import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Authority {
  readonly folder: string;
  /** Its own certificate, which whoever trusts it is given. */
  readonly caFile: string;
  /** Certificate and key that it gave to the names. */
  readonly cert: string;
  readonly key: string;
}

/**
 * An authority of this machine's own, and what it gave to those names, in a folder for the caller to remove;
 * undefined where there is no openssl.
 */
export const anAuthority = (names: readonly string[]): Authority | undefined => {
  const folder = mkdtempSync(join(tmpdir(), 'sandpool-authority-'));
  const file = (name: string): string => join(folder, name);
  const openssl = (...args: readonly string[]): unknown =>
    execFileSync('openssl', args, { stdio: 'ignore' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  writeFileSync(file('names'), `subjectAltName=${names.map((name) => `DNS:${name}`).join()}\n`);
  try {
    openssl(
      ...['req', '-x509', ...newKey, '-days', '2', '-subj', '/CN=an authority of tests'],
      ...['-keyout', file('ca.key'), '-out', file('ca.pem')],
    );
    openssl(
      ...['req', ...newKey, '-subj', '/CN=sandboxes', '-keyout', file('key.pem')],
      ...['-out', file('request.pem')],
    );
    openssl(
      ...['x509', '-req', '-in', file('request.pem'), '-days', '2', '-extfile', file('names')],
      ...['-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-CAcreateserial'],
      ...['-out', file('cert.pem')],
    );
  } catch {
    return undefined;
  }
  return {
    folder,
    caFile: file('ca.pem'),
    cert: readFileSync(file('cert.pem'), 'utf8'),
    key: readFileSync(file('key.pem'), 'utf8'),
  };
};
