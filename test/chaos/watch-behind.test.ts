import { expect } from 'chai';
import { rmSync } from 'node:fs';
import { createServer, request, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { aCertificate } from '../../local-cluster/a-certificate.ts';
import { WatchBehind } from '../support/chaos/faults/watch-behind.ts';
import { FaultProxy } from '../support/harness/fault-proxy.ts';
import { skipBecause } from '../support/harness/skip-because.ts';

/** More than two answers take on a busy machine. */
const BEHIND_MS = 6_000;

describe('a watch that is behind', () => {
  let server: Server;
  let proxy: FaultProxy;
  let port: number;
  let folder: string;
  let ca: string;

  before(async function () {
    const certificate = aCertificate();
    if (!certificate) return skipBecause(this, 'needs openssl');
    const { key, cert } = certificate;
    [folder, ca] = [certificate.folder, cert];
    server = createServer({ key, cert }, (asked, answer) => {
      answer.end(asked.url);
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    proxy = new FaultProxy(
      { host: '127.0.0.1', port: (server.address() as AddressInfo).port },
      { key, cert, ca },
    );
    port = await proxy.start();
  });
  after(async () => {
    await proxy?.stop();
    if (server)
      await new Promise((resolve) => {
        server.close(resolve);
      });
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  const asked = (path: string): Promise<string> =>
    new Promise((resolve, reject) => {
      request({ host: '127.0.0.1', port, path, ca, agent: false }, (answer) => {
        let text = '';
        answer
          .on('data', (chunk: Buffer) => {
            text += chunk.toString();
          })
          .on('end', () => {
            resolve(text);
          });
      })
        .on('error', reject)
        .end();
    });

  it('tells late, and what else is asked over the same way is on time', async () => {
    const fault = new WatchBehind(proxy, {
      n: 0,
      plural: 'sandboxpools',
      behindMs: BEHIND_MS,
      lastsMs: 0,
    });
    await fault.begin();
    const order: string[] = [];
    const note = async (path: string): Promise<void> => {
      order.push(await asked(path));
    };
    const late = note('/apis/sandpool.dev/v1alpha1/sandboxpools?resourceVersion=1&watch=true');
    await Promise.all(
      [
        '/apis/sandpool.dev/v1alpha1/sandboxpools?limit=5',
        '/apis/sandpool.dev/v1alpha1/sandboxes?watch=true',
      ].map(note),
    );
    await late;
    expect(order).to.have.length(3);
    expect(order[2]).to.contain('sandboxpools?resourceVersion=1&watch=true');
    await fault.end();
    expect(proxy.lag).to.equal(undefined);
  });
});
