import { expect } from 'chai';
import { buffer } from 'node:stream/consumers';
import { systemClock } from '../../../src/embedded/system-clock.ts';
import type { PodDriver } from '../../support/cluster/a-pod-driver.ts';
import { aServedSandbox, type ServedSandbox } from './a-served-sandbox.ts';
import { call, RpcStream, sent, type Json } from './rpc-client.ts';

const PROCESS = '/process.Process';

/** Shows that the services of E2B's SDKs stand on Pods as they do on one machine. */
export const servicesOnPods = (open: () => Promise<PodDriver>): void => {
  describe("E2B's services on Pods", function () {
    let pods: PodDriver;
    let served: ServedSandbox;
    before(async () => {
      pods = await open();
      const { id } = await pods.claimed();
      served = await aServedSandbox({ driver: pods.driver, clock: systemClock(), sandboxId: id });
    });
    after(async () => {
      served.stop();
      await pods.close();
    });

    it('run a process, reconnect to it, give it input, and see its end', async () => {
      const process = { cmd: '/bin/sh', args: ['-c', 'echo "$A"; exec cat'], envs: { A: 'b' } };
      const first = await RpcStream.open(served.port, `${PROCESS}/Start`, { process });
      const begun = (await first.until(({ event }) => 'start' in (event as Json)))['event'] as Json;
      const { pid } = begun['start'] as { readonly pid: number };
      await first.until(({ event }) => 'data' in (event as Json));
      first.leave();
      const again = await RpcStream.open(served.port, `${PROCESS}/Connect`, { process: { pid } });
      await again.until(({ event }) => 'start' in (event as Json));
      const input = { stdin: Buffer.from('hé\n').toString('base64') };
      expect(await call(served.port, `${PROCESS}/SendInput`, { process: { pid }, input })) //
        .to.deep.equal({ status: 200, json: {} });
      await call(served.port, `${PROCESS}/CloseStdin`, { process: { pid } });
      await again.end();

      expect(pid).to.be.above(0);
      expect(again.messages.slice(1)).to.deep.equal([
        { event: { data: { stdout: Buffer.from('hé\n').toString('base64') } } },
        { event: { end: { exited: true, status: 'exit status 0' } } },
      ]);
    });

    it('write, read, list and remove files', async () => {
      const path = `/tmp/e2b-${served.sandboxId}/é`;
      const query = `/files?path=${encodeURIComponent(path)}`;
      const headers = { 'content-type': 'application/octet-stream' };
      const written = await sent(served.port, query, { body: 'content', headers });
      expect(JSON.parse(String(await buffer(written)))) //
        .to.deep.equal([{ path, name: 'é', type: 'file' }]);
      const read = await sent(served.port, query, { method: 'GET' });
      expect(String(await buffer(read))).to.equal('content');
      const folder = { path: path.slice(0, -2) };
      const { json } = await call(served.port, '/filesystem.Filesystem/ListDir', folder);
      expect((json['entries'] as Json[])[0]).to.include({ path, size: '7' });
      await call(served.port, '/filesystem.Filesystem/Remove', folder);
      const gone = await call(served.port, '/filesystem.Filesystem/Stat', folder);
      expect([gone.status, gone.json['code']]).to.deep.equal([404, 'not_found']);
    });
  });
};
