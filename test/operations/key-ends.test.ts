import { expect } from 'chai';
import type { ApiKeyRecord } from '../../src/model/api-key.ts';
import { KeyEnds } from '../../src/services/keys/key-ends.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const KEY = 'a'.repeat(16);

describe('the end of a key', () => {
  let clock: TestClock;
  let keys: Map<string, ApiKeyRecord>;
  let ends: KeyEnds;
  let told: string[];

  const put = (expiresAt: number): void => {
    keys.set(KEY, {
      keyId: KEY,
      revision: '1',
      namespace: 'n',
      shortName: 's',
      team: 't',
      user: 'u',
      role: 'user',
      description: '',
      hash: '',
      issuedAt: 0,
      expiresAt,
    });
    ends.changed(KEY);
  };
  const follow = (name: string): (() => void) =>
    ends.follow(KEY, () => {
      told.push(name);
    });

  beforeEach(() => {
    clock = new TestClock();
    keys = new Map();
    ends = new KeyEnds({ clock, find: (keyId) => keys.get(keyId) });
    told = [];
    put(clock.now() + 10_000);
  });

  it('ends each follower once, at its revocation', () => {
    follow('a');
    follow('b');
    expect(told).to.deep.equal([]);

    keys.delete(KEY);
    ends.changed(KEY);
    ends.changed(KEY);

    expect(told).to.deep.equal(['a', 'b']);
    expect([ends.size, clock.waiting]).to.deep.equal([0, 0]);
  });

  it('ends its followers at the expiry', () => {
    follow('a');
    clock.advance(9_999);
    expect(told).to.deep.equal([]);
    clock.advance(1);
    expect(told).to.deep.equal(['a']);
    expect(ends.size).to.equal(0);
  });

  it('follows a changed expiry', () => {
    follow('a');
    put(clock.now() + 30_000);
    clock.advance(20_000);
    expect(told).to.deep.equal([]);
    put(clock.now() - 1);
    expect(told).to.deep.equal(['a']);
  });

  it('ends a follower at once if the key is already gone or expired', () => {
    clock.advance(10_000);
    follow('over');
    keys.delete(KEY);
    follow('gone');
    expect(told).to.deep.equal(['over', 'gone']);
    expect(ends.size).to.equal(0);
  });

  it('is forgotten with its last follower, who may leave twice', () => {
    const [leave, other] = [follow('a'), follow('b')];
    leave();
    leave();
    expect([ends.size, clock.waiting]).to.deep.equal([1, 1]);
    other();
    expect([ends.size, clock.waiting]).to.deep.equal([0, 0]);

    keys.delete(KEY);
    ends.changed(KEY);
    expect(told).to.deep.equal([]);
  });

  it('lets a follower leave from its own callback, and sends nothing afterwards', () => {
    const leave = ends.follow(KEY, () => {
      leave();
      told.push('a');
    });
    keys.delete(KEY);
    ends.changed(KEY);
    put(clock.now() + 1_000);
    clock.advance(5_000);
    expect(told).to.deep.equal(['a']);
  });
});
