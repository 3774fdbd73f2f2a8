import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Only this user can read the key files. */
export interface Authority {
  readonly folder: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** `organization`: group for the API server. `hosts`: as openssl writes them (`DNS:…`, `IP:…`). */
export interface Subject {
  readonly name: string;
  readonly organization?: string;
  readonly hosts?: readonly string[];
}

const run = promisify(execFile);
const openssl = (args: readonly string[]): Promise<unknown> => run('openssl', args);
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'] as const;

export const makeAuthority = async (folder: string): Promise<Authority> => {
  const [certFile, keyFile] = [join(folder, 'ca.crt'), join(folder, 'ca.key')];
  await openssl([
    'req',
    '-x509',
    ...KEY,
    '-days',
    '30',
    '-subj',
    '/CN=control-plane-ca',
    '-keyout',
    keyFile,
    '-out',
    certFile,
  ]);
  return { folder, certFile, keyFile };
};

/** Writes FILE.crt and FILE.key, for a server and a client. */
export const issueCertificate = async (
  authority: Authority,
  file: string,
  subject: Subject,
): Promise<{ readonly certFile: string; readonly keyFile: string }> => {
  const at = (extension: string): string => join(authority.folder, `${file}.${extension}`);
  const group = subject.organization === undefined ? '' : `/O=${subject.organization}`;
  await openssl([
    'req',
    '-new',
    ...KEY,
    '-subj',
    `${group}/CN=${subject.name}`,
    '-keyout',
    at('key'),
    '-out',
    at('csr'),
  ]);
  const hosts = subject.hosts ? [`subjectAltName=${subject.hosts.join(',')}`] : [];
  writeFileSync(at('ext'), ['extendedKeyUsage=serverAuth,clientAuth', ...hosts, ''].join('\n'));
  await openssl([
    'x509',
    '-req',
    '-days',
    '30',
    '-in',
    at('csr'),
    '-extfile',
    at('ext'),
    '-CA',
    authority.certFile,
    '-CAkey',
    authority.keyFile,
    '-set_serial',
    `0x${Buffer.from(file).toString('hex').slice(0, 38)}`,
    '-out',
    at('crt'),
  ]);
  return { certFile: at('crt'), keyFile: at('key') };
};

/** Signs service-account tokens. */
export const makeKeyPair = async (
  folder: string,
): Promise<{ readonly publicFile: string; readonly privateFile: string }> => {
  const [publicFile, privateFile] = [
    join(folder, 'service-account.pub'),
    join(folder, 'service-account.key'),
  ];
  await openssl(['ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', privateFile]);
  await openssl(['ec', '-in', privateFile, '-pubout', '-out', publicFile]);
  return { publicFile, privateFile };
};
