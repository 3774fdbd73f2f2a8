import { expect } from 'chai';
import type { LogBatch } from '../../src/contracts/sandbox-driver.ts';
import { SeenLogs } from '../../src/k8s/logs/seen-logs.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { aFakePod, type FakePod } from './a-fake-pod-server.ts';

const START = Date.parse('2026-01-31T12:00:00Z');
const timeOf = (second: number): string =>
  new Date(START + second * 1_000).toISOString().replace('Z', '000000Z');
const lines = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from }, (_, i) => `${timeOf(from + i)} line ${from + i}`);

describe('a log that its kubelet has rotated', () => {
  let under: FakePod;
  beforeEach(async () => {
    under = await aFakePod(() => undefined);
  });
  afterEach(() => under.close());

  const tail = (more: object = {}) =>
    under.streams.logs(under.pod, { tailLines: 100, limitBytes: 1 << 20, ...more });

  it('is reported as truncated if the reader missed lines', async () => {
    under.logged = lines(0, 10);
    expect(await tail()).to.have.property('truncated', false);

    under.logged = lines(5, 12);
    const { lines: kept, truncated } = await tail();
    expect([kept.length, truncated]).to.deep.equal([7, true]);
  });

  it('is reported as truncated even if nothing is left of it', async () => {
    under.logged = lines(0, 10);
    await tail();
    under.logged = [];

    expect(await tail()).to.deep.include({ lines: [], truncated: true });
  });

  it('is not reported as truncated if all requested lines exist', async () => {
    under.logged = lines(0, 10);
    await tail({ tailLines: 2 });
    expect(await tail()).to.have.property('truncated', false);

    under.logged = lines(5, 20);
    expect(await tail({ since: START + 12_000 })).to.have.property('truncated', false);
    expect(await tail({ since: START })).to.have.property('truncated', true);
  });

  it('is reported as truncated to followers, too', async () => {
    under.logged = lines(0, 10);
    const controller = new AbortController();
    for await (const batch of under.streams.followLogs(under.pod, '0', controller.signal)) {
      if (batch.lines.length === 10) break;
    }
    controller.abort();

    under.logged = lines(10, 12);
    expect(await tail()).to.have.property('truncated', true);
  });

  it('can be followed on without repeated lines even if its kubelet has lost track', async () => {
    const followed = await aFakePod(() => undefined, { silenceMs: 100 });
    followed.losesTrack = true;
    followed.logged = lines(0, 3);
    const seen: string[] = [];
    for await (const batch of followed.streams.followLogs(
      followed.pod,
      '0',
      AbortSignal.timeout(NEVER_COMES_MS),
    )) {
      seen.push(...batch.lines.map(({ text }) => String(text)));
      if (seen.length === 3) followed.logged = lines(1, 6);
      if (seen.length >= 6) break;
    }
    await followed.close();

    expect(seen).to.deep.equal(Array.from({ length: 6 }, (_, n) => `line ${n}`));
  });

  it('is followed over one link while no lines arrive, and nothing counts as skipped', async () => {
    const followed = await aFakePod(() => undefined, { silenceMs: 20 });
    followed.losesTrack = true;
    followed.logged = lines(0, 3);
    const controller = new AbortController();
    const batches: LogBatch[] = [];
    const over = (async () => {
      for await (const batch of followed.streams.followLogs(followed.pod, '0', controller.signal))
        batches.push(batch);
    })();
    const looks = (): number =>
      followed.logRequests.filter((url) => url.includes('tailLines=1')).length;
    await eventually(() => looks() >= 3, 'it was looked for more');
    followed.logged = [];
    const before = looks();
    await eventually(() => looks() >= before + 3, 'it was looked for more after a rotation');
    controller.abort();
    await over;
    await followed.close();

    expect(followed.logRequests.filter((url) => url.includes('follow=true'))).to.have.length(1);
    expect(batches.map(({ skipped }) => skipped)).to.deep.equal([false]);
  });

  it('is tracked for each container', () => {
    const seen = new SeenLogs();
    seen.saw(under.pod, { first: timeOf(1), last: timeOf(2) });

    expect(seen.lacks({ ...under.pod, container: 'other' }, { since: '', first: '' })).to.equal(
      false,
    );
    expect(seen.lacks(under.pod, { since: '', first: '' })).to.equal(true);
    expect(seen.lacks(under.pod, { since: '', first: timeOf(1) })).to.equal(false);
  });

  it('is no longer tracked if too many logs are read', () => {
    const seen = new SeenLogs();
    seen.saw(under.pod, { first: timeOf(1), last: timeOf(2) });
    for (let n = 0; n < 10_000; n++)
      seen.saw({ ...under.pod, uid: `u${n}-` }, { first: timeOf(1), last: timeOf(2) });

    expect(seen.lacks(under.pod, { since: '', first: '' })).to.equal(false);
  });
});
