import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Certificate {
  readonly folder: string;
  readonly certFile: string;
  readonly keyFile: string;
  readonly cert: string;
  readonly key: string;
}

/**
 * Self-signed, for 127.0.0.1, localhost and further names. The caller removes the folder. Undefined
 * without openssl.
 */
export const aCertificate = ({
  days = 2,
  names = [],
}: { readonly days?: number; readonly names?: readonly string[] } = {}):
  | Certificate
  | undefined => {
  const folder = mkdtempSync(join(tmpdir(), 'sandpool-tls-'));
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  try {
    execFileSync(
      'openssl',
      [
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        String(days),
        '-subj',
        '/CN=localhost',
        '-addext',
        [
          'subjectAltName=IP:127.0.0.1',
          ...['localhost', ...names].map((name) => `DNS:${name}`),
        ].join(),
        '-keyout',
        keyFile,
        '-out',
        certFile,
      ],
      { stdio: 'ignore' },
    );
  } catch {
    return undefined;
  }
  return {
    folder,
    certFile,
    keyFile,
    cert: readFileSync(certFile, 'utf8'),
    key: readFileSync(keyFile, 'utf8'),
  };
};
