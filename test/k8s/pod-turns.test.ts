import { expect } from 'chai';
import { NotJoinable } from '../../src/contracts/sandbox-driver.ts';
import { CallTurns } from '../../src/contracts/agent/call-turns.ts';
import { rejection } from '../support/harness/rejection.ts';

describe('queued calls for one sandbox', () => {
  const never = (): Promise<never> => new Promise(() => {});

  it('run one after the other, even after a failure', async () => {
    const turns = new CallTurns();
    const seen: string[] = [];
    const call = (name: string, error?: Error) =>
      turns.take('a', async () => {
        seen.push(`${name} begins`);
        await Promise.resolve();
        seen.push(`${name} ends`);
        if (error) throw error;
        return name;
      });
    const outcomes = await Promise.allSettled([call('one', new Error('no')), call('two')]);

    expect(outcomes.map(({ status }) => status)).to.deep.equal(['rejected', 'fulfilled']);
    expect(seen).to.deep.equal(['one begins', 'one ends', 'two begins', 'two ends']);
  });

  it('time out unstarted behind a call that hangs', async () => {
    const turns = new CallTurns(20);
    let hasBegun = false;
    const begin = async (): Promise<void> => {
      hasBegun = true;
    };
    let goOn = (): void => {};
    const first = turns.take('a', () => new Promise<void>((resolve) => (goOn = resolve)));
    expect(await rejection(turns.take('a', begin))).to.be.instanceOf(NotJoinable);
    goOn();
    await first;
    await turns.take('a', async () => undefined);

    expect(hasBegun).to.equal(false);
  });

  it('can be cancelled by their signal', async () => {
    const turns = new CallTurns();
    void turns.take('a', never);
    const controller = new AbortController();
    const called = turns.take('a', never, controller.signal);
    controller.abort(new Error('enough'));

    expect((await rejection(called)).message).to.equal('enough');
  });

  it('are limited per sandbox, without delaying others', async () => {
    const turns = new CallTurns(50);
    for (let count = 0; count < 128; count += 1) turns.take('a', never).catch(() => undefined);

    expect(await rejection(turns.take('a', never))).to.be.instanceOf(NotJoinable);
    expect(await turns.take('b', async () => 'done')).to.equal('done');
  });
});
