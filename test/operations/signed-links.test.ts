import { expect } from 'chai';
import type { Caller } from '../../src/model/tenant.ts';
import { signatureOf, signedLinks } from '../../src/operations/keys/signed-links.ts';
import { rejection } from '../support/harness/rejection.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const owner = { namespace: 'blue', team: 'blue', user: 'ada' };
const KEYS = Array.from({ length: 10 }, (_, n) => ({
  tenant: owner,
  role: 'user',
  keyId: `k${n}`,
  expiresAt: Number.POSITIVE_INFINITY,
}));
const SANDBOXES = Array.from({ length: 1_000 }, (_, n) => `s${n}`);

describe('links to files that name no sandbox', () => {
  const signerOf = (clock: TestClock) =>
    signedLinks({
      clock,
      apiKeys: { list: () => ({ items: KEYS, total: KEYS.length }), check: () => undefined },
      tokensOf: ({ keyId }: Caller, id: string) => ({ access: `${keyId} ${id}`, traffic: '' }),
      supervisor: {
        index: { list: () => ({ ids: SANDBOXES, total: SANDBOXES.length }) },
        sandbox: () => ({ status: 'Running', context: { record: { claim: { owner } } } }),
      },
    } as unknown as Parameters<typeof signedLinks>[0]);
  const link = (from: string, token: string, sandboxId?: string) => ({
    ...{ from, sandboxId, signature: signatureOf(token) },
    text: (tried: string) => tried,
  });

  it('of one address take their share of the looking, and none of that of others', async () => {
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

  it('may take all of it from many addresses, and nothing from links that say their sandbox', async () => {
    const find = signerOf(new TestClock());
    for (let from = 0; from < 4; from += 1) await find(link(`stranger ${from}`, 'guessed'));

    expect(await rejection(find(link('friend', 'k3 s7')))).to.have.property('code', 'RATE_LIMITED');
    expect(await find(link('friend', 'k3 s7', 's7'))).to.include({ sandboxId: 's7' });
  });
});
