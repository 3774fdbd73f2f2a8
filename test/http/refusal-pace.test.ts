import { expect } from 'chai';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  MOST_HELD,
  MOST_HELD_MS,
  REFUSALS_AT_ONCE,
  RefusalPace,
} from '../../src/http/limits/refusal-pace.ts';
import { tooMuchWaits } from '../../src/model/limit-refusals.ts';
import { within } from '../support/harness/a-daemon.ts';
import { aServer } from './a-server.ts';

describe('refusals of a tenant that retries at once', () => {
  let now: number;
  let held: number[];
  let pace: RefusalPace;
  beforeEach(() => {
    now = 10_000;
    held = [];
    pace = new RefusalPace({
      now: () => now,
      wait: (ms) => {
        held.push(ms);
        return Promise.resolve();
      },
    });
  });
  const refuse = (times: number): void => {
    for (let n = 0; n < times; n += 1) void pace.hold('noisy');
  };

  it('are immediate up to fifty, and then a hundred a second', () => {
    refuse(REFUSALS_AT_ONCE);
    expect(held).to.deep.equal([]);
    refuse(3);
    expect(held).to.deep.equal([10, 20, 30]);
  });

  it('are delayed by at most three seconds, however many there are', () => {
    refuse(100_000);
    expect(Math.max(...held)).to.equal(MOST_HELD_MS);
    now += MOST_HELD_MS + 1_000;
    held = [];
    refuse(1);
    expect(held).to.deep.equal([]);
  });

  it('are spread out near that maximum, and so are the retries', () => {
    refuse(2_000);
    const late = held.slice(MOST_HELD_MS / 10);
    expect(late).to.have.length(2_000 - REFUSALS_AT_ONCE - MOST_HELD_MS / 10);
    expect(Math.min(...late)).to.be.at.least(MOST_HELD_MS / 2);
    expect(new Set(late).size).to.be.above(100);
  });

  it('are immediate while too many others are delayed', async () => {
    refuse(REFUSALS_AT_ONCE + MOST_HELD);
    expect(held).to.have.length(MOST_HELD);
    expect(pace.hold('noisy')).to.equal(undefined);
    await nextTurn();
    expect(pace.hold('noisy')).to.be.an.instanceOf(Promise);
  });

  it('do not delay other tenants', () => {
    refuse(1_000);
    held = [];
    expect(pace.hold('quiet')).to.equal(undefined);
    expect(held).to.deep.equal([]);
  });

  it('are delayed on the wire only if they result from a lack of capacity', async () => {
    const asked: string[] = [];
    let letGo: () => void = () => {};
    const free = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const hold = (tenant: string): Promise<void> => {
      asked.push(tenant);
      return free;
    };
    const server = await aServer({ pace: { hold } });
    try {
      expect((await server.tenant.get('/sandboxpools/none')).status).to.equal(404);
      expect(asked).to.deep.equal([]);
      Object.assign(server.operations, { listPools: () => Promise.reject(tooMuchWaits()) });
      expect((await server.tenant.get('/sandboxpools')).status).to.equal(429);
      expect(asked, 'nobody else is about').to.deep.equal([]);
      await server.stranger.get('/sandboxes');
      let status: number | undefined;
      const refused = server.tenant.get('/sandboxpools').then((answer) => {
        ({ status } = answer);
      });
      await within('it is refused', () => asked.length === 1 || undefined);
      expect((await server.tenant.get('/sandboxes')).status).to.equal(200);
      expect(status).to.equal(undefined);
      letGo();
      await refused;
      expect(status).to.equal(429);
    } finally {
      letGo();
      await server.stop();
    }
  });
});
