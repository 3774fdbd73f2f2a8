import { expect } from 'chai';
import { EventType } from '../../../src/http/e2b/services/generated/filesystem.ts';
import { Watchers } from '../../../src/http/e2b/services/files/watchers.ts';
import type { AddressedSandbox } from '../../../src/http/e2b/traffic/addressed-sandbox.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { rejection } from '../../support/harness/rejection.ts';
import { TestClock } from '../../support/fakes/test-clock.ts';
import { caller } from './a-served-sandbox.ts';

describe('polled watchers', () => {
  let watchers: Watchers;
  let ended: number;
  beforeEach(() => {
    let made = 0;
    watchers = new Watchers({ clock: new TestClock(), newId: () => `w${(made += 1)}` });
    ended = 0;
  });
  afterEach(() => watchers.stop());

  const at = (sandboxId: string): AddressedSandbox => ({
    ...{ sandboxId, caller, requestId: 'r', by: 'token' },
    signal: new AbortController().signal,
  });
  /** Tells of one change; ends once `until` resolves. */
  const add = (sandboxId: string, until: Promise<void>): Promise<string> =>
    watchers.add(at(sandboxId), async () => ({
      close: () => {
        ended += 1;
      },
      events: async function* () {
        yield { name: 'seen', type: EventType.CREATE };
        await until;
      },
    }));
  const eightOf = async (sandboxId: string, until: Promise<void>): Promise<readonly string[]> => {
    const ids = [];
    for (let count = 0; count < 8; count += 1) ids.push(await add(sandboxId, until));
    return ids;
  };
  const never = new Promise<void>(() => {});

  it('are limited in number', async () => {
    let begun = 0;
    const many = async (of: (at: number) => string): Promise<number> => {
      let kept = 0;
      for (let at = 0; at < 10_000; at += 1)
        await add(of(at), never).then(
          () => (kept += 1),
          (error: unknown) => expect(error).to.have.property('code', 'TOO_MANY_STREAMS'),
        );
      begun += kept;
      return kept;
    };

    expect(await many(() => 's')).to.equal(8);
    expect(await many((at) => `s${at}`)).to.equal(24);
    watchers.stop();
    expect(ended).to.equal(begun);
  });

  it('are replaced by new ones once their sandbox has ended, and keep earlier changes', async () => {
    let end = (): void => {};
    const over = new Promise<void>((resolve) => {
      end = resolve;
    });
    const ids = await eightOf('s0', over);
    for (const sandbox of ['s1', 's2', 's3']) await eightOf(sandbox, never);
    expect(await rejection(add('s4', never))).to.have.property('code', 'TOO_MANY_STREAMS');

    end();
    // all of what they hold of the sandbox is given back at once
    await eventually(() => ended === 8, 'the watches are ended');

    const last = ids.at(-1) ?? '';
    for (let count = 0; count < 7; count += 1) await add('s4', never);
    expect(await watchers.take(at('s0'), last)).to.deep.equal([
      { name: 'seen', type: EventType.CREATE },
    ]);
    await add('s4', never);
    expect((await rejection(watchers.take(at('s0'), last))).message).to.contain('no such watcher');
    expect(await rejection(add('s5', never))).to.have.property('code', 'TOO_MANY_STREAMS');
  });
});
