import { expect } from 'chai';
import { once } from 'node:events';
import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:tls';
import { aCertificate, type Certificate } from '../../local-cluster/a-certificate.ts';
import { TlsFiles } from '../../src/http/server/tls-files.ts';
import { aServer, type TestServer } from './a-server.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { skipBecause } from '../support/harness/skip-because.ts';

describe('changed certificates', () => {
  let [served, renewed]: (Certificate | undefined)[] = [];
  let files: TlsFiles;
  let server: TestServer;
  const lines: string[] = [];
  const log = {
    ...quietLog,
    info: (_: object, event: string) => void lines.push(event),
    error: (_: object, event: string) => void lines.push(event),
  };

  beforeEach(async function () {
    [served, renewed] = [aCertificate(), aCertificate()];
    if (!served || !renewed)
      return skipBecause(this, 'there is no openssl to make a certificate with');
    lines.length = 0;
    files = new TlsFiles({ certFile: served.certFile, keyFile: served.keyFile, log });
    server = await aServer({ tls: files.identity });
  });
  afterEach(async () => {
    for (const made of [served, renewed]) if (made) rmSync(made.folder, { recursive: true });
    await server?.stop();
  });

  const look = (): Promise<void> =>
    files.look((identity) => {
      server.renew(identity);
    });
  /** Whether a new connection gets this certificate, by the version of TLS that it asks for. */
  const isServed = async (
    { cert }: Certificate,
    maxVersion: 'TLSv1.2' | 'TLSv1.3' = 'TLSv1.3',
  ): Promise<boolean> => {
    const socket = connect({ host: '127.0.0.1', port: server.port, ca: cert, maxVersion });
    const good = await once(socket, 'secureConnect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    return good;
  };

  it('are used for new connections without a restart', async () => {
    if (!served || !renewed) throw new Error('no certificates');
    expect([await isServed(served), await isServed(renewed)]).to.deep.equal([true, false]);
    copyFileSync(renewed.certFile, served.certFile);
    copyFileSync(renewed.keyFile, served.keyFile);
    await look();

    expect([
      await isServed(served),
      await isServed(renewed),
      await isServed(renewed, 'TLSv1.2'),
    ]).to.deep.equal([false, true, true]);
    expect([files.problem, lines]).to.deep.equal([undefined, ['serves-new-certificate']]);
  });

  it('replace the old ones only if they are valid, and an invalid one is reported once', async () => {
    if (!served || !renewed) throw new Error('no certificates');
    const [cert, key] = [served.cert, served.key];
    const bad: readonly (() => void)[] = [
      () => {
        writeFileSync(served?.certFile ?? '', 'no certificate');
      },
      () => {
        copyFileSync(renewed?.certFile ?? '', served?.certFile ?? '');
      }, // and its key comes later
      () => {
        rmSync(served?.keyFile ?? '');
      },
    ];
    for (const spoil of bad) {
      lines.length = 0;
      spoil();
      await look();
      await look();
      expect(lines).to.deep.equal(['new-certificate-not-used']);
      expect(files.problem).to.contain('see the log').and.not.contain(served.certFile);
      expect(await isServed(served)).to.equal(true);
    }
    writeFileSync(served.certFile, cert);
    writeFileSync(served.keyFile, key);
    await look();
    expect(files.problem).to.equal(undefined);
  });
});
