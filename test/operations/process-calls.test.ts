import { expect } from 'chai';
import { Refusal } from '../../src/model/refusals.ts';
import { callsUnderWay } from '../../src/services/processes/calls-under-way.ts';
import { rejection } from '../support/harness/rejection.ts';

describe('starts and inputs of processes', () => {
  const never = (): Promise<never> => new Promise(() => {});
  const refusalOf = async (call: Promise<unknown>): Promise<Refusal> => {
    const error = await rejection(call);
    expect(error).to.be.instanceOf(Refusal).with.property('code', 'TOO_MANY_COMMANDS');
    return error as Refusal;
  };

  it('are limited to 128 per sandbox and 512 per tenant at a time', async () => {
    const calls = callsUnderWay();
    for (let count = 0; count < 512; count += 1)
      void calls({ tenant: 'blue', sandboxId: String(count % 4) }, never);

    const full = await refusalOf(calls({ tenant: 'red', sandboxId: '0' }, never));
    const own = await refusalOf(calls({ tenant: 'blue', sandboxId: '5' }, never));
    expect([full.message, own.message].map((text) => text.replace(/ \d.*/, ''))).to.deep.equal([
      'the sandbox has',
      'you have',
    ]);
    expect(await calls({ tenant: 'red', sandboxId: '5' }, async () => 'done')).to.equal('done');
  });

  it('release their slots, however they end', async () => {
    const calls = callsUnderWay();
    const key = { tenant: 'blue', sandboxId: 'one' };
    for (let count = 0; count < 200; count += 1)
      await rejection(calls(key, () => Promise.reject(new Error('no'))));
    expect(await calls(key, async () => 'done')).to.equal('done');
  });
});
