import { expect } from 'chai';
import type { Caller } from '../../src/model/tenant.ts';
import { signatureOf, signedLinks } from '../../src/services/keys/signed-links.ts';
import { rejection } from '../support/harness/rejection.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const owner = { namespace: 'blue', team: 'blue', user: 'ada' };
const keysOf = (length: number) =>
  Array.from({ length }, (_, n) => ({
    tenant: owner,
    role: 'user',
    keyId: `k${n}`,
    expiresAt: Number.POSITIVE_INFINITY,
  }));
const KEYS = keysOf(10);
const SANDBOXES = Array.from({ length: 1_000 }, (_, n) => `s${n}`);

describe('signed links to files', () => {
  const signerOf = (clock: TestClock, keys = KEYS) =>
    signedLinks({
      clock,
      apiKeys: {
        list: () => ({ items: keys, total: keys.length }),
        find: (id: string) => keys.find(({ keyId }) => keyId === id),
        check: () => undefined,
      },
      tokensOf: ({ keyId }: Caller, id: string, clusterId = '') => ({
        ...{ access: `${keyId} ${id}${clusterId}`, traffic: '' },
      }),
      supervisor: {
        index: { list: () => ({ ids: SANDBOXES, total: SANDBOXES.length }) },
        sandbox: () => ({ status: 'Running', context: { record: { claim: { owner } } } }),
      },
    } as unknown as Parameters<typeof signedLinks>[0]);
  const link = (from: string, token: string, sandboxId?: string) => ({
    ...{ from, sandboxId, signature: signatureOf(token) },
    ...{ before: '', after: '' },
  });

  it('without a sandbox name are limited per address, without an effect on other addresses', async () => {
    const clock = new TestClock();
    const find = signerOf(clock);
    let refused: Error | undefined;
    for (let sent = 0; sent < 10 && !refused; sent += 1)
      await find(link('stranger', 'guessed')).catch((error: Error) => (refused = error));

    expect(refused).to.have.property('code', 'RATE_LIMITED');
    expect(await find(link('friend', 'k3 s7'))).to.include({ sandboxId: 's7', goodFor: 'access' });
    clock.advance(1_000);
    expect(await find(link('stranger', 'k3 s7'))).to.include({ sandboxId: 's7' });
  });

  it('without a sandbox name are limited in total, without an effect on links with a name', async () => {
    const find = signerOf(new TestClock());
    for (let from = 0; from < 4; from += 1) await find(link(`stranger ${from}`, 'guessed'));

    expect(await rejection(find(link('friend', 'k3 s7')))).to.have.property('code', 'RATE_LIMITED');
    expect(await find(link('friend', 'k3 s7', 's7'))).to.include({ sandboxId: 's7' });
  });

  it('to a remote sandbox are tried with the keys of all tenants, the last match first', async () => {
    const clock = new TestClock();
    const find = signerOf(clock, keysOf(5_000));
    const elsewhere = (token: string) => ({ ...link('friend', token, 's7'), clusterId: 'west' });

    expect(await find(elsewhere('k4999 s7'))).to.equal(undefined);
    clock.advance(1_000);
    expect(await find(elsewhere('k4999 s7west'))).to.deep.include({
      ...{ sandboxId: 's7', clusterId: 'west', goodFor: 'access' },
    });
    clock.advance(1_000);
    for (let again = 0; again < 100; again += 1)
      expect(await find(elsewhere('k4999 s7west'))).to.include({ clusterId: 'west' });
    for (let sent = 0; sent < 2; sent += 1)
      expect(await find(elsewhere('guessed'))).to.equal(undefined);
    expect(await rejection(find(elsewhere('guessed')))).to.have.property('code', 'RATE_LIMITED');
    expect(await find(elsewhere('k4999 s7west'))).to.include({ clusterId: 'west' });
  });
});
