import { expect } from 'chai';
import { StartPlaces } from '../../src/actors/pool/start-places.ts';
import { ALICE, APool, T0, thePool } from '../machines/examples.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const BOB = { ...ALICE, user: 'bob' };
const MANY = 20_000;

/** Two places, of which one tenant may have one. */
const twoPlaces = () => {
  const granted: string[] = [];
  const grants: (() => void)[] = [];
  const places = new StartPlaces(
    { first: 2, most: 2 },
    {
      clock: new TestClock(T0),
      outbox: { put: ({ act }) => void grants.push(() => void act()), drain: () => undefined },
      grant: (uid) => {
        granted.push(uid);
        return true;
      },
    },
  );
  const grant = (): readonly string[] => {
    for (let next = grants.shift(); next; next = grants.shift()) next();
    return granted;
  };
  return { places, grant };
};

describe('slots for instances that become ready', () => {
  it('have no waiters of deleted pools, so that other tenants can wait', () => {
    const { places, grant } = twoPlaces();
    places.ask('hung', ALICE);
    const deleted = new APool({ record: thePool({ deleting: 'keep-running' }) });
    for (let n = 0; n < MANY; n += 1) {
      const after = { context: deleted.context };
      places.ask(`short-lived-${n}`, ALICE);
      places.changed(`short-lived-${n}`, { before: after, after, event: { type: 'RECORD' } });
    }
    places.ask('last', ALICE);
    grant();
    places.settle('hung', 0);
    expect(grant()).to.deep.equal(['hung', 'last']);
  });

  it('go to the next pool if the first needs none any more', () => {
    const { places, grant } = twoPlaces();
    const { context } = new APool({ counts: { starting: 1 } });
    for (const uid of ['resized', 'next']) places.ask(uid, ALICE);
    grant();
    const [before, after] = [{ context }, { context }];
    places.changed('resized', { before, after, event: { type: 'PLACE' } });
    expect(grant()).to.deep.equal(['resized', 'next']);
  });

  it('reach another tenant even while one waits with very many pools', () => {
    const { places, grant } = twoPlaces();
    for (let n = 0; n < MANY; n += 1) places.ask(`pool-${n}`, ALICE);
    for (const uid of ['his', 'his other']) places.ask(uid, BOB);
    grant();
    places.settle('his', 0);
    expect(grant()).to.deep.equal(['pool-0', 'his', 'his other']);
  });
});
