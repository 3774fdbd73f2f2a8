import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

interface Served {
  readonly port: number;
  readonly key: string;
  readonly id: string;
}

describe('an exception in a connection to an endpoint', () => {
  let child: ChildProcess;
  let served: Served;

  before(async () => {
    child = fork(fileURLToPath(new URL('faulty-gateway.ts', import.meta.url)), { stdio: 'ignore' });
    [served] = (await once(child, 'message')) as [Served];
  });
  after(async () => {
    if (child.exitCode !== null) return;
    child.disconnect();
    await once(child, 'exit');
  });

  const get = async (path: string): Promise<string> => {
    const url = `http://127.0.0.1:${served.port}/sandboxes/${served.id}/endpoints/web${path}`;
    return (await fetch(url, { headers: { 'SERVICE-API-KEY': served.key } })).text();
  };

  it('ends its own request only', async () => {
    const failed = await get('/bad').then(
      () => 'answered',
      () => 'cut',
    );

    expect(failed).to.equal('cut');
    expect(await get('/good')).to.equal('good');
    expect(child.exitCode).to.equal(null);
  });

  it('ends the process if it belongs to no request', async () => {
    expect(await get('/good')).to.equal('good');

    child.send('throw');

    expect((await once(child, 'exit'))[0]).to.equal(3);
  });
});
