import { expect } from 'chai';
import { ConnectionPermits, type ConnectionPermit } from '../../src/k8s/api/connection-permits.ts';

describe('permits for connections to the API server', () => {
  const turn = (): Promise<void> =>
    new Promise((resolve) => {
      setImmediate(resolve);
    });
  /** Permits of 16 connections, with a clock that a test moves. */
  const aWorld = () => {
    let time = 0;
    const permits = new ConnectionPermits(16, 1_000, () => time);
    const held = { loud: [] as ConnectionPermit[], quiet: [] as ConnectionPermit[] };
    const ask = (namespace: 'loud' | 'quiet', count: number): void => {
      for (let n = 0; n < count; n += 1)
        void permits.acquire(namespace, 60_000).then((permit) => held[namespace].push(permit));
    };
    const passes = (ms: number): void => {
      time += ms;
    };
    const release = async (namespace: 'loud' | 'quiet', count: number): Promise<void> => {
      for (const permit of held[namespace].splice(0, count)) permit.release();
      await turn();
    };
    return { held, ask, passes, release };
  };

  it('are nearly all available to a single busy namespace', async () => {
    const { held, ask, release } = aWorld();
    ask('loud', 40);
    await turn();
    expect(held.loud).to.have.length(14);
    for (let left = 40; left > 0; left -= 14) await release('loud', 14);
  });

  it('are split between two busy namespaces, and return to one a second later', async () => {
    const { held, ask, passes, release } = aWorld();
    ask('quiet', 1);
    ask('loud', 40);
    await turn();
    expect([held.quiet.length, held.loud.length]).to.deep.equal([1, 8]);
    await release('quiet', 1);
    expect(held.loud).to.have.length(8);

    passes(999);
    await release('loud', 1);
    expect(held.loud).to.have.length(8);
    passes(1);
    await release('loud', 1);
    expect(held.loud).to.have.length(14);
    for (let left = 40; left > 0; left -= 14) await release('loud', 14);
  });

  it('are not reduced by calls outside of namespaces', async () => {
    const permits = new ConnectionPermits(16, 1_000, () => 0);
    (await permits.acquire('', 60_000)).release();
    const loud: ConnectionPermit[] = [];
    for (let n = 0; n < 20; n += 1)
      void permits.acquire('loud', 60_000).then((permit) => loud.push(permit));
    await turn();
    expect(loud).to.have.length(14);
    for (const permit of loud.splice(0)) permit.release();
    await turn();
    for (const permit of loud.splice(0)) permit.release();
  });
});
