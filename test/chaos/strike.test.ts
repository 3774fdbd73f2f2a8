import { expect } from 'chai';
import type { Fault } from '../support/chaos/faults/fault.ts';
import { strike, type StrikeTerms } from '../support/chaos/strike.ts';
import { rejection } from '../support/harness/rejection.ts';

const TAKEOVER_MS = 8_000;
const terms: StrikeTerms = { now: () => performance.now(), replicas: 3, withinMs: 30_000 };
const wait = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, 1);
  });

const aFault = (part: Partial<Fault> = {}): Fault => ({
  kind: 'a fault',
  victim: 'somebody',
  lastsMs: 0,
  others: 'lead',
  begin: wait,
  end: wait,
  ...part,
});

describe('a strike', () => {
  it('has overlapping faults, and ends with the last of them', async () => {
    const told: string[] = [];
    const met = meeting(2);
    const one = (name: string): Fault =>
      aFault({
        kind: name,
        begin: async () => {
          told.push(`${name} begins`);
        },
        end: async () => {
          await met();
          told.push(`${name} ends`);
        },
      });

    const done = await strike(
      [
        { fault: one('a'), afterMs: 0 },
        { fault: one('b'), afterMs: 1 },
      ],
      terms,
    );

    expect(told).to.have.members(['a begins', 'b begins', 'a ends', 'b ends']);
    expect(told.slice(0, 2)).to.deep.equal(['a begins', 'b begins']);
    expect(done.map(({ kind }) => kind)).to.deep.equal(['a', 'b']);
  });

  it('lets other replicas lead while one cannot', async () => {
    const [one] = await strike([{ fault: aFault({ hinders: 0, lastsMs: 5 }), afterMs: 0 }], terms);
    expect(one?.led).to.equal((one?.from ?? 0) + TAKEOVER_MS);
  });

  it('waits for its end before anybody leads if others have to wait', async () => {
    const [one] = await strike(
      [{ fault: aFault({ others: 'wait', lastsMs: 5 }), afterMs: 0 }],
      terms,
    );
    expect(one?.led).to.equal((one?.to ?? 0) + TAKEOVER_MS);
  });

  it('waits for its end before anybody leads if no replica is left', async () => {
    const met = meeting(3);
    const done = await strike(
      [0, 1, 2].map((n) => ({ fault: aFault({ hinders: n, begin: met }), afterMs: 0 })),
      terms,
    );
    for (const { to, led } of done) expect(led).to.equal(to + TAKEOVER_MS);
  });

  it('fails after all its faults if one could not be carried out', async () => {
    let isMended = false;
    const failing = aFault({
      kind: 'impossible',
      begin: async () => {
        throw new Error('no');
      },
    });
    const other = aFault({
      end: async () => {
        await wait();
        isMended = true;
      },
    });
    const error = await rejection(
      strike(
        [
          { fault: failing, afterMs: 0 },
          { fault: other, afterMs: 0 },
        ],
        terms,
      ),
    );
    expect(String(error)).to.contain('impossible (somebody)');
    expect(isMended).to.equal(true);
  });

  it('fails if it does not end in time', async () => {
    const error = await rejection(
      strike([{ fault: aFault({ end: () => new Promise(() => undefined) }), afterMs: 0 }], {
        ...terms,
        withinMs: 20,
      }),
    );
    expect(String(error)).to.contain('not mended within 20 ms');
  });
});

/** Resolves for everyone once so many have come. */
const meeting = (count: number): (() => Promise<void>) => {
  let left = count;
  let open = (): void => undefined;
  const all = new Promise<void>((resolve) => {
    open = resolve;
  });
  return async () => {
    left -= 1;
    if (left === 0) open();
    await all;
  };
};
