import { expect } from 'chai';
import { ClaimEnv } from '../../src/actors/sandbox/claim-env.ts';
import { execInSandbox } from '../../src/actors/sandbox/commands/exec-in-sandbox.ts';
import { aClaim, ALICE } from '../support/builders/instance-orders.ts';
import { testClaimEnv } from '../support/builders/test-claim-env.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';

const ENV = { A: '1', EMPTY: '', LINES: 'a\n=b\u0001ä', LD_PRELOAD: '/x.so' };
const sealedFor = (id: string, sealedEnv: string, part: object = {}) => ({
  id,
  claim: { ...aClaim(), ...part, sealedEnv },
});

describe('variables of a claim', () => {
  it("are passed on unchanged, and a command's own variables override them", () => {
    const record = sealedFor('i1', testClaimEnv.seal('i1', ALICE, ENV));

    expect(testClaimEnv.over(record)).to.deep.equal(ENV);
    expect(testClaimEnv.over(record, { A: '2', B: '3' })).to.deep.equal({ ...ENV, A: '2', B: '3' });
    expect(testClaimEnv.over({ id: 'i1', claim: aClaim() }, { B: '3' })).to.deep.equal({ B: '3' });
    expect(testClaimEnv.over({ id: 'i1' })).to.equal(undefined);
  });

  it('are encrypted at rest, with a different ciphertext each time', () => {
    const secret = 'canary0123456789';
    const [one, other] = [1, 2].map(() => testClaimEnv.seal('i1', ALICE, { NAME: secret }));

    expect(one).to.not.equal(other);
    expect(Buffer.from(one ?? '', 'base64').toString('latin1'))
      .to.not.include(secret)
      .and.not.include('NAME');
  });

  it('decrypt only for their own sandbox, owner and installation, and only unmodified', () => {
    const sealed = testClaimEnv.seal('i1', ALICE, ENV);
    const flipped = Buffer.from(sealed, 'base64');
    flipped[20]! ^= 1; // it is longer
    for (const [env, record] of [
      [testClaimEnv, sealedFor('i2', sealed)],
      [testClaimEnv, sealedFor('i1', sealed, { owner: { ...ALICE, user: 'eve' } })],
      [testClaimEnv, sealedFor('i1', flipped.toString('base64'))],
      [testClaimEnv, sealedFor('i1', sealed.slice(0, 20))],
      [testClaimEnv, sealedFor('i1', '')],
      [new ClaimEnv(Buffer.alloc(32, 1)), sealedFor('i1', sealed)],
    ] as const)
      expect(() => env.over(record)).to.throw('cannot be decrypted');
  });

  it('are in the record that the claim writes, and reach each command', async () => {
    const world = await aSupervisor({ pool: { replicas: 1 } });
    const { supervisor, driver, pool, claim } = world;
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'one is idle');
    const metadata = { job: '42' };
    const view = await claim(alice, { poolName: 'default', env: ENV, metadata });
    const record = (await driver.read(view.id)).record;
    let given: unknown;
    driver.onExec = async (_id, { env }) => {
      given = env;
      return {};
    };
    const request = { argv: ['true'], timeoutMs: 1_000, outputLimit: 10, env: { A: '2' } };
    await execInSandbox(world)(alice, view.id, { request, signal: new AbortController().signal });

    expect(view).to.deep.include({ metadata }).and.to.not.have.any.keys('env', 'sealedEnv');
    expect(record?.claim?.metadata).to.deep.equal(metadata);
    expect(testClaimEnv.over(record)).to.deep.equal(ENV);
    expect(given).to.deep.equal({ ...ENV, A: '2' });
  });
});
